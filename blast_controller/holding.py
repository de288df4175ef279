"""When a controller that ends again and again by its own fault must stop deciding, and the record that tells.

An event that the core cannot handle ends the process: the service manager starts it anew, and a reconcile repairs what
was left half done. But whoever caused the event does so again (a client retries, a device reports once more). Where a
run ended so, and the very next one too within `WITHIN` seconds of its start, the one after that *holds*: it decides
nothing and leaves devices as they are, until an operator lets it go on, which empties the record.

Runs are told apart by the journal's epoch and timed by a steady clock within each: neither a clock that is set nor a
machine that is booted makes two ends near or far. Normal stops, SIGKILL and power cuts are not recorded, and stand
between two ends. The record is what holds, not the run, so that no restart ends it.
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
MAX_BYTES = 16_384


@dataclass(frozen=True, slots=True)
class End:
    """The end of the run `epoch` by a fault of ours, after `ran` seconds; `sentence` says what the fault was."""

    epoch: int
    ran: float
    sentence: str


def reason_to_hold(ends: Sequence[End]) -> str | None:
    """Why a controller with this record must hold, as a sentence; None if it need not."""
    if len(ends) < KEPT:
        return None
    before, last = ends[-2:]
    if last.epoch != before.epoch + 1 or last.ran > WITHIN:
        return None
    return (
        f"The controller is holding: it ended by an error of its own, and did so again {last.ran:.1f} s after it was "
        f"started anew ({last.sentence}). It decides nothing and leaves the light as it is. An operator reads the log "
        "before both ends, keeps away what caused them, and lets it go on by `blast resume`."
    )


class EndRecord:
    """The record in a small file; without a path nothing is recorded, and the controller never holds."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    @classmethod
    def beside(cls, journal: Path | None) -> EndRecord:
        """The record of the controller with this journal; it survives as the journal does."""
        return cls(None if journal is None else journal.with_name(f"{journal.name}.ends"))

    def read(self) -> list[End]:
        """The ends that are recorded, oldest first; nothing where the file cannot be understood, which is logged."""
        if self._path is None or not self._path.exists():
            return []
        try:
            with self._path.open("rb") as file:
                return [_end(line) for line in file.read(MAX_BYTES).splitlines()]
        except (OSError, ValueError) as error:
            log.error("%s tells nothing of how the controller ended before: %s", self._path, error)
            return []

    def add(self, end: End) -> None:
        """Record that the process ends now. A failure is logged: the process ends in any case."""
        # Several parts of the process may fail together: a run ends once.
        earlier = [before for before in self.read() if before.epoch != end.epoch]
        self._write([*earlier, replace(end, sentence=end.sentence[:LONGEST_SENTENCE])][-KEPT:])

    def clear(self) -> None:
        """Forget all ends. Raises OSError."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _write(self, ends: Sequence[End]) -> None:
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
            log.error("%s cannot be written, so this end will not be known: %s", self._path, error.strerror)


def _end(line: bytes) -> End:
    match json.loads(line):
        case {"epoch": int(epoch), "ran": float(ran) | int(ran), "sentence": str(sentence)}:
            return End(epoch, float(ran), sentence)
    raise ValueError("a line is not of this program's making")
