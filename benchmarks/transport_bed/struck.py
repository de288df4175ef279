"""A transfer by Blast in the middle of which something happens to some receivers."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transport_bed.bed import Bed
from transport_bed.failures import RunFailed
from transport_bed.program import Program
from transport_bed.run import Run, opened
from transport_bed.tools.blast import Blast

Strike = Callable[[Blast, Run], None]
"""Called when the sender has been started; waits for its moment and does what it is for. Raises RunFailed."""
Act = Callable[[Blast, Run, Collection[int]], None]
"""What is done to some receivers."""
Moments = Sequence[tuple[float, Collection[int]]]
"""Who is struck how many seconds after the sender's start."""
ALL_COMPLETE, SOME_COMPLETE = 0, 3
_TOLD = 5


@dataclass(frozen=True)
class Struck:
    """What became of it. `wrong` says what must not be so, in sentences; the times run from the sender's start."""

    others_seconds: float
    """Until the last receiver to which nothing happened had its verified file."""
    sender_seconds: float
    """Until the sender ended."""
    report: dict[str, Any]
    wrong: tuple[str, ...]


def nothing(_tool: Blast, _run: Run) -> None:
    """For comparison."""


def at_half(victims: Collection[int], number: signal.Signals) -> Strike:
    """Send a signal to the victims when the first of them has received half of the file."""

    def strike(tool: Blast, run: Run) -> None:
        before = run.bed.received_bytes(min(victims))
        run.await_bytes(min(victims), before + run.size / 2)
        for victim in victims:
            tool.receivers[victim].signal(number)

    return strike


def at_times(moments: Moments, number: signal.Signals) -> Strike:
    """Send a signal to receivers so many seconds after the sender's start."""

    def send(tool: Blast, _run: Run, victims: Collection[int]) -> None:
        for victim in victims:
            tool.receivers[victim].signal(number)

    return at_moments(moments, send)


def at_moments(moments: Moments, act: Act) -> Strike:
    """Do this to receivers so many seconds after the sender's start."""

    def strike(tool: Blast, run: Run) -> None:
        for seconds, victims in moments:
            time.sleep(max(0.0, run.started + seconds - time.monotonic()))
            act(tool, run, victims)

    return strike


def struck_transfer(  # noqa: PLR0913 - where, what, and what happens
    tool: Blast,
    bed: Bed,
    source: Path,
    *,
    limit_seconds: float,
    victims: Collection[int] = (),
    strike: Strike = nothing,
    all_victims_fail: bool = True,
) -> Struck:
    """Carry the file once. The report may name no others than the victims as failed, and must name all that fail."""
    with opened(bed, source) as run:
        try:
            tool.prepare(run)
            failing = set(victims) if all_victims_fail else set()
            return watched(tool, run, limit_seconds, strike, victims=set(victims), failing=failing)
        except RunFailed as failure:
            return Struck(limit_seconds, limit_seconds, {}, (str(failure),))


def watched(  # noqa: PLR0913 - those of struck_transfer
    tool: Blast, run: Run, limit_seconds: float, strike: Strike, *, victims: set[int], failing: set[int]
) -> Struck:
    """Carry the file once to receivers that listen; those that are `failing` must be reported. Raises RunFailed."""
    started = run.begin(limit_seconds)
    sender = tool.start_sender(run)
    strike(tool, run)
    others = [receiver for receiver in run.receivers if receiver not in victims]
    try:
        ended = _received(tool, run, others)
    except RunFailed as failure:
        raise RunFailed(f"{failure}{_reasons(sender)}") from None
    sender_ended = sender.await_end(run.deadline)
    report = sender.last_json()
    wrong = [*_wrong_copies(run, victims), *_wrong_report(report, _names(tool, victims), _names(tool, failing))]
    expected = SOME_COMPLETE if _named(report) else ALL_COMPLETE
    if sender.status != expected:
        wrong.append(f"the sender ended with status {sender.status}, not {expected}")
    return Struck(ended - started, sender_ended - started, report, tuple(wrong))


def _received(tool: Blast, run: Run, others: Sequence[int]) -> float:
    """When the last of them had the file. Raises RunFailed, which says of how many nobody can say that."""
    moments, failures = list[float](), list[str]()
    for receiver in others:
        try:
            moments.append(tool.receivers[receiver].await_event("received", run.deadline))
        except RunFailed as failure:
            failures.append(str(failure))
    if failures:
        raise RunFailed(f"{len(failures)} of {len(others)} to which nothing happened: {'; '.join(failures[:_TOLD])}")
    return max(moments)


def _wrong_copies(run: Run, victims: set[int]) -> Iterator[str]:
    intact = set(run.intact(run.receivers))
    for receiver in run.receivers:
        if receiver not in intact and (receiver not in victims or run.output(receiver).exists()):
            yield f"h{receiver} has a file that is not the one that was sent"


def _wrong_report(report: dict[str, Any], allowed: set[str], expected: set[str]) -> Iterator[str]:
    named = _named(report)
    if not report:
        yield "the sender gave no report"
    if named - allowed:
        yield f"the report names {', '.join(sorted(named - allowed))} as failed, to which nothing happened"
    if expected - named:
        yield f"the report does not name {', '.join(sorted(expected - named))} as failed"


def _reasons(sender: Program) -> str:
    """Why a sender that has ended gave receivers up."""
    if sender.status is None:
        return ""
    reasons = {one["reason"] for one in sender.last_json().get("receivers", ()) if one["reason"]}
    return f"; the sender gave up who {'; '.join(sorted(reasons))}" if reasons else ""


def _named(report: dict[str, Any]) -> set[str]:
    return {one["name"] for one in report.get("receivers", ()) if not one["complete"]}


def _names(tool: Blast, receivers: set[int]) -> set[str]:
    return {tool.name_of(receiver) for receiver in receivers}
