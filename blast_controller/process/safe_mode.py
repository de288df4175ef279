"""Safe mode of a controller that fails repeatedly, and the record of its failures.

An event that the core cannot handle ends the process: the service manager restarts it, and a reconciliation repairs
what was incomplete. But the cause often repeats (a client retries, a device reports again). If a run failed, and the
very next one failed as well within `WITHIN` seconds of its start, the one after that starts in *safe mode*: it decides
nothing and leaves devices as they are until an operator resumes it, which clears the record.

Runs are identified by the journal's epoch and timed by a steady clock within each: neither a changed clock nor a reboot
affects the distance of two failures. Normal stops, SIGKILL and power failures are not recorded, but count as runs in
between. The record causes safe mode, not the run, so that no restart ends it.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

log = logging.getLogger(__name__)

WITHIN = 60.0
"""Seconds; a run that ends sooner has not got over what ended the one before."""
KEPT = 2
"""Ends in the record: the latest decide."""
LONGEST_SENTENCE = 500
"""Characters of an exception in the file, whose text may contain input of clients."""
MAX_BYTES = 16_384
"""The file holds a few ends of runs; more of it is not ours."""


@dataclass(frozen=True, slots=True)
class RunFailure:
    """The failure of the run `epoch` after `ran` seconds; `sentence` is its cause."""

    epoch: int
    ran: float
    sentence: str


def safe_mode_reason(ends: Sequence[RunFailure]) -> str | None:
    """Return why a controller with this record must start in safe mode, as a sentence, or None."""
    if len(ends) < KEPT:
        return None
    before, last = ends[-2:]
    if last.epoch != before.epoch + 1 or last.ran > WITHIN:
        return None
    return (
        f"The controller is in safe mode: it failed twice, the second time {last.ran:.1f} s after its restart "
        f"({last.sentence}). It decides nothing and leaves all light trees as they are. Read the log before both "
        "failures, remove their cause, and run `blast resume`."
    )


class EndRecord:
    """The record in a small file; without a path nothing is recorded, and safe mode is never entered."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    @classmethod
    def beside(cls, journal: Path | None) -> EndRecord:
        """Return the record of the controller with this journal; it survives as the journal does."""
        return cls(None if journal is None else journal.with_name(f"{journal.name}.ends"))

    def read(self) -> list[RunFailure]:
        """Return the recorded failures, oldest first; empty for an unreadable file, which is logged."""
        if self._path is None or not self._path.exists():
            return []
        try:
            with self._path.open("rb") as file:
                return [_end(line) for line in file.read(MAX_BYTES).splitlines()]
        except (OSError, ValueError) as error:
            log.error("the record of failures %s cannot be read: %s", self._path, error)
            return []

    def add(self, end: RunFailure) -> None:
        """Record that the process ends now. A failure is logged: the process ends in any case."""
        # Several parts of the process may fail together: a run ends once.
        earlier = [before for before in self.read() if before.epoch != end.epoch]
        self._write([*earlier, replace(end, sentence=end.sentence[:LONGEST_SENTENCE])][-KEPT:])

    def clear(self) -> None:
        """Forget all ends. Raises OSError."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _write(self, ends: Sequence[RunFailure]) -> None:
        if self._path is None:
            return
        text = "".join(json.dumps(asdict(end)) + "\n" for end in ends)
        beside = self._path.with_name(f"{self._path.name}.new")
        try:
            with beside.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self._path)
        except OSError as error:
            log.error(
                "the record of failures %s cannot be written, so the next start does not know this failure: %s",
                self._path,
                error.strerror,
            )


def _end(line: bytes) -> RunFailure:
    match json.loads(line):
        case {"epoch": int(epoch), "ran": float(ran) | int(ran), "sentence": str(sentence)}:
            return RunFailure(epoch, float(ran), sentence)
    raise ValueError("a line is malformed")
