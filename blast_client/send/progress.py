"""Output of `blast send` during a transfer and at its end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Protocol

from blast_client.cli.terminal import columns
from blast_client.cli.units import format_rate
from blast_client.send.failures import failed_of, sentences
from blast_client.send.node_sets import folded
from blast_transport.base.report import Progress, ReceiverOutcome, TransferResult

if TYPE_CHECKING:
    from tqdm import tqdm

Print = Callable[[dict[str, object]], None]


class ProgressView(Protocol):
    """A view of a transfer."""

    def report(self, progress: Progress) -> None:
        """Show the progress; the sending thread calls this."""

    def done(self, results: Sequence[TransferResult], unreachable: Mapping[str, str], refused: str) -> None:
        """Show the outcome; `refused` is the reason why no grant was available."""


class ProgressLines:
    """JSON lines on standard output: `progress`, and at the end one `result`."""

    def __init__(self, write: Print) -> None:
        self._write = write

    def __enter__(self) -> ProgressLines:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def report(self, progress: Progress) -> None:
        """Write a line of progress."""
        self._write(progress.to_json())

    def done(self, results: Sequence[TransferResult], unreachable: Mapping[str, str], refused: str) -> None:
        """Write the line of the result."""
        self._write(
            {
                "event": "result",
                "transfers": [result.to_json() for result in results],
                "unreachable": dict(unreachable),
                "no_optical_path": refused or None,
            }
        )


class _Bar:
    """A progress bar that follows the slowest receiver, and a summary."""

    def __init__(self, size: int | None, name: str, receivers: int, before: str) -> None:
        self._receivers, self._before = receivers, before
        self._bar = _terminal_bar(size, name) if sys.stderr.isatty() else None

    def __enter__(self) -> _Bar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def report(self, progress: Progress) -> None:
        """Update the bar."""
        if self._bar is None:
            return
        self._bar.n = progress.slowest
        share = f"{progress.median / progress.bytes:.0%}" if progress.bytes else "-"
        words: dict[str, object] = {"via": progress.transport or "-", "median": share}
        if progress.repairs:
            words["repairs"] = progress.repairs
        if progress.demoted:
            words["demoted"] = len(progress.demoted)
        if progress.failed:
            words["failed"] = progress.failed
        self._bar.set_postfix(words)

    def done(self, results: Sequence[TransferResult], unreachable: Mapping[str, str], refused: str) -> None:
        """Print a summary on standard output, and failed receivers on standard error."""
        self._close()
        if refused:
            sys.stderr.write(f"blast: no optical path: {refused}\n")
        for note in dict.fromkeys(note for result in results for note in result.notes):
            sys.stderr.write(f"blast: {note}\n")
        failed = {**unreachable, **failed_of(results)}
        for hosts, reason in sentences(failed):
            have = "does not have" if hosts in failed else "do not have"
            sys.stderr.write(f"blast: {hosts} {have} it: {reason}\n")
        _report([outcome for result in results for outcome in result.receivers if outcome.complete])
        complete = [result for result in results if result.complete]
        have_it = sum(result.complete for result in complete)
        sys.stdout.write(f"{self._before}{have_it} of {self._receivers} receivers have it{_how(complete)}\n")

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()


def _terminal_bar(size: int | None, name: str) -> tqdm[NoReturn]:
    # Its import searches the installed packages.
    from tqdm import tqdm

    # tqdm draws an empty bar on a terminal that reports no width.
    return tqdm(total=size, desc=name, unit="B", unit_scale=True, file=sys.stderr, ncols=columns(sys.stderr, 80))


def _report(complete: Sequence[ReceiverOutcome]) -> None:
    """Print notes on receivers that have the data but were demoted, or have not stored it durably yet."""
    names = {outcome.name for outcome in complete}
    for hosts, reason in sentences({outcome.name: outcome.demoted for outcome in complete if outcome.demoted}):
        sys.stderr.write(f"blast: {hosts} {'was' if hosts in names else 'were'} demoted: {reason}\n")
    not_yet = [outcome.name for outcome in complete if outcome.durable is False]
    if not_yet:
        have, agents = ("has", "its agent") if len(not_yet) == 1 else ("have", "their agents")
        sys.stderr.write(f"blast: {folded(not_yet)} {have} it, but not on disk yet: `durable` is off in {agents}\n")


def _how(results: Sequence[TransferResult]) -> str:
    """Return the size, time, rate and transports of complete transfers; the rate excludes resumed bytes and holes."""
    if not results:
        return ""
    size, seconds = results[0].bytes, max(result.seconds for result in results)
    before = min(result.resumed_bytes for result in results)
    holes = results[0].hole_bytes
    transports = " and ".join(dict.fromkeys(name for result in results for name in result.transports))
    summary = f", verified: {size} bytes in {seconds:.2f} s"
    if size and before == size:
        return f"{summary}, all present before"
    if seconds:
        summary += f", {format_rate(max(0, size - before - holes) * 8 / seconds)}"
    summary += f", via {transports}" if transports else ""
    summary += f"; {before} of them present before" if before else ""
    return summary + (f"; {holes} of them holes, not sent" if holes else "")


def bar(size: int | None, name: str, receivers: int, before: str = "") -> _Bar:
    """Return the view for a terminal; `size` in bytes (None: unknown), `before`: prefix of the summary."""
    return _Bar(size, name, receivers, before)
