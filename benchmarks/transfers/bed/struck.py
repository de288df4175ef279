"""Transfers by Blast during which receivers fail."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import blast_transport
from benchmarks.set_up import SetUp
from benchmarks.transfers.bed.bed import Bed
from benchmarks.transfers.bed.contents import compiled_once
from benchmarks.transfers.bed.failures import RunFailedError
from benchmarks.transfers.bed.program import Program
from benchmarks.transfers.bed.run import Run, opened
from benchmarks.transfers.bed.tools.blast import Blast

Strike = Callable[[Blast, Run], None]
"""Called when the sender has started; waits for the time of the fault and acts. Raises RunFailedError."""
Act = Callable[[Blast, Run, Collection[int]], None]
"""An action on some receivers."""
Moments = Sequence[tuple[float, Collection[int]]]
"""Seconds after the start of the sender, and the receivers that fail then."""
_ALL_COMPLETE, _SOME_COMPLETE = 0, 3
_START_SECONDS = 2.0
"""Time to start one receiver on a busy machine."""
_WARM_AT_ONCE = 10
"""More receivers at once would exceed the time limit on few processors."""


@dataclass(frozen=True)
class Struck:
    """The result; `wrong` has a sentence for each fault. Times run from the start of the sender."""

    others_seconds: float
    """Until the last receiver that did not fail had its verified file."""
    sender_seconds: float
    """Until the sender ended."""
    report: dict[str, Any]
    wrong: tuple[str, ...]


def at_half(victims: Collection[int], number: signal.Signals) -> Strike:
    """Send a signal to the victims when the first of them has received half of the file."""

    def strike(tool: Blast, run: Run) -> None:
        run.await_bytes(min(victims), run.bed.received_bytes(min(victims)) + run.size / 2)
        signaling(number)(tool, run, victims)

    return strike


def at_moments(moments: Moments, act: Act) -> Strike:
    """Act on receivers at these moments."""

    def strike(tool: Blast, run: Run) -> None:
        for seconds, victims in moments:
            time.sleep(max(0.0, run.started + seconds - time.monotonic()))
            act(tool, run, victims)

    return strike


def signaling(number: signal.Signals) -> Act:
    """Send a signal to receivers that still run."""

    def act(tool: Blast, _run: Run, victims: Collection[int]) -> None:
        for victim in victims:
            if tool.receivers[victim].status is None:
                os.killpg(tool.receivers[victim].pid, number)

    return act


_kill = signaling(signal.SIGKILL)


def _kill_and_mend(tool: Blast, run: Run, victims: Collection[int]) -> None:
    # In this order: no host may receive a reset of the victims.
    _kill(tool, run, victims)
    for victim in victims:
        tool.receivers[victim].await_end(run.deadline)
    run.bed.mend(victims)


@dataclass(frozen=True)
class FailureMode:
    """A failure mode: `strike` makes hosts fail; `bury` ends their remaining processes and restores them."""

    name: str
    strike: Act
    bury: Act


MODES = {
    mode.name: mode
    for mode in (
        FailureMode("killed", _kill, _kill),
        FailureMode("frozen", signaling(signal.SIGSTOP), _kill),
        FailureMode("vanished", lambda _tool, run, victims: run.bed.cut(victims), _kill_and_mend),
    )
}
"""killed: the kernel resets every connection at once. frozen: the kernel acknowledges and accepts until its buffers are
full, but no program answers. vanished: the kernel does not answer either."""


def struck_transfer(  # noqa: PLR0913 - place, tool, and failures
    tool: Blast,
    bed: Bed,
    source: Path,
    *,
    limit_seconds: float,
    victims: Collection[int] = (),
    strike: Strike | None = None,
    all_victims_fail: bool = True,
) -> Struck:
    """Send the file once. The report must name all victims that fail and no other receiver."""
    with opened(bed, source) as run:
        try:
            tool.prepare(run)
            failing = set(victims) if all_victims_fail else set()
            return watched(tool, run, limit_seconds, strike, victims=set(victims), failing=failing)
        except RunFailedError as failure:
            return Struck(limit_seconds, limit_seconds, {}, (str(failure),))


def watched(  # noqa: PLR0913 - those of struck_transfer
    tool: Blast, run: Run, limit_seconds: float, strike: Strike | None, *, victims: set[int], failing: set[int]
) -> Struck:
    """Send the file once to receivers that listen. Raises RunFailedError."""
    started = run.begin(limit_seconds)
    sender = tool.start_sender(run)
    if strike is not None:
        strike(tool, run)
    try:
        ended = _received(tool, run, [receiver for receiver in run.receivers if receiver not in victims])
    except RunFailedError as failure:
        raise RunFailedError(f"{failure}{_reasons(sender)}") from None
    sender_ended = sender.await_end(run.deadline)
    report = sender.last_json()
    names = [{tool.name_of(receiver) for receiver in some} for some in (victims, failing)]
    wrong = [*_wrong_copies(run, victims), *_wrong_report(report, *names)]
    expected = _SOME_COMPLETE if _failed_in(report) else _ALL_COMPLETE
    if sender.status != expected:
        wrong.append(f"the sender ended with status {sender.status}, not {expected}")
    return Struck(ended - started, sender_ended - started, report, tuple(wrong))


def _received(tool: Blast, run: Run, others: Sequence[int]) -> float:
    """Return the time at which the last of these receivers had the file. Raises RunFailedError."""
    moments, failures = list[float](), list[str]()
    for receiver in others:
        try:
            moments.append(tool.receivers[receiver].await_event("received", run.deadline))
        except RunFailedError as failure:
            failures.append(str(failure))
    if failures:
        raise RunFailedError(f"{len(failures)} of {len(others)} healthy receivers failed: {'; '.join(failures[:5])}")
    return max(moments)


def _wrong_copies(run: Run, victims: set[int]) -> Iterator[str]:
    intact = set(run.intact(run.receivers))
    for receiver in run.receivers:
        if receiver not in intact and (receiver not in victims or run.output(receiver).exists()):
            yield f"the file at h{receiver} differs from the original"


def _wrong_report(report: dict[str, Any], allowed: set[str], expected: set[str]) -> Iterator[str]:
    named = _failed_in(report)
    if not report:
        yield "the sender printed no report"
    if named - allowed:
        yield f"the report names healthy receivers as failed: {', '.join(sorted(named - allowed))}"
    if expected - named:
        yield f"the report does not name {', '.join(sorted(expected - named))} as failed"


def _reasons(sender: Program) -> str:
    """Return the reasons for which a sender that has exited gave up receivers."""
    if sender.status is None:
        return ""
    reasons = {one["reason"] for one in sender.last_json().get("receivers", ()) if one["reason"]}
    return f"; the sender gave up receivers: {'; '.join(sorted(reasons))}" if reasons else ""


def _failed_in(report: dict[str, Any]) -> set[str]:
    return {one["name"] for one in report.get("receivers", ()) if not one["complete"]}


class Standing(SetUp):
    """Receivers that stay up for several transfers of `source` by `tool`; failed receivers are restarted.

    Raises RunFailedError, HostError.
    """

    def __init__(self, tool: Blast, bed: Bed, source: Path) -> None:
        self._tool, self._bed, self._source = tool, bed, source

    def _set_up(self, undo: ExitStack) -> None:
        package = Path(blast_transport.__file__).parent
        undo.enter_context(compiled_once(package, self._source.parent / "bytecode"))
        self._run = undo.enter_context(opened(self._bed, self._source))
        self._allow(len(self._run.receivers))
        self._tool.prepare(self._run)
        self._warm(self._run.receivers)

    def carry(self, limit_seconds: float, mode: FailureMode | None = None, moments: Moments = ()) -> Struck:
        """Send the file once while receivers fail, then restore them; a failed transfer is in the result.

        Raises RunFailedError if a receiver does not restart, and HostError if a link cannot be cut or restored.
        """
        victims = {victim for _, some in moments for victim in some}
        strike = None if mode is None else at_moments(moments, mode.strike)
        try:
            struck = watched(self._tool, self._run, limit_seconds, strike, victims=victims, failing=victims)
        except RunFailedError as failure:
            struck = Struck(limit_seconds, limit_seconds, {}, (str(failure),))
        if mode is not None:
            self._allow(len(victims))
            mode.bury(self._tool, self._run, victims)
        # After a failed transfer the state of the other receivers is unknown.
        self._restart(sorted(victims) if struck.report else self._run.receivers)
        for receiver in self._run.receivers:
            self._run.output(receiver).unlink(missing_ok=True)
        return struck

    def _restart(self, receivers: Sequence[int]) -> None:
        """Restart these receivers in empty folders; end all other processes that a transfer has started."""
        self._allow(len(receivers))
        standing = [self._tool.receivers[receiver] for receiver in self._run.receivers if receiver not in receivers]
        for program in [program for program in self._run.programs if program not in standing]:
            program.end()
            self._run.programs.remove(program)
        for receiver in receivers:
            shutil.rmtree(self._run.directory(receiver))
            self._run.directory(receiver).mkdir()
            self._tool.receivers[receiver] = self._tool.start_receiver(self._run, receiver)
        for receiver in receivers:
            self._tool.receivers[receiver].await_event("listening", self._run.deadline)
        self._warm(receivers)

    def _warm(self, receivers: Sequence[int]) -> None:
        """Send a small file, because a receiver loads modules in its first session. Raises RunFailedError."""
        small = self._source.with_name("small")
        small.write_bytes(bytes(1024))
        for start in range(0, len(receivers), _WARM_AT_ONCE):
            some = receivers[start : start + _WARM_AT_ONCE]
            self._allow(len(some))
            run = replace(self._run, source=small, receivers=some, programs=[])
            sender = self._tool.start_sender(run)
            try:
                for receiver in some:
                    self._tool.receivers[receiver].await_event("received", run.deadline)
                    run.output(receiver).unlink()
                sender.await_end(run.deadline)
            finally:
                sender.end()

    def _allow(self, starts: int) -> None:
        self._run.deadline = time.monotonic() + _START_SECONDS * (10 + starts)
