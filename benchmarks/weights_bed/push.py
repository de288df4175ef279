"""One push of all weights by one way, on one clock: from the sender's call to the last receiver that has read them."""

from __future__ import annotations

import time
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from transport_bed.bed import SENDER, Bed
from transport_bed.failures import RunFailed
from transport_bed.run import opened

from weights_bed.ways.way import SMALL, WEIGHTS, Way

_START_SECONDS = 180.0
_PIECE = 1 << 20


@dataclass(frozen=True)
class Pushed:
    """What it took: seconds, bytes that left the sender ÷ those of the weights, and the machine's idle share meanwhile.

    `failure` is empty when every receiver had exactly the bytes of the sender.
    """

    seconds: float
    uplink_copies: float
    idle_share: float
    failure: str = ""

    def to_json(self) -> dict[str, Any]:
        """As a table has it."""
        return asdict(self)


def pushed(way: Way, bed: Bed, source: Path, limit_seconds: float) -> Pushed:
    """Start the way's programs, push a small model and then, timed, the weights; end the programs."""
    with opened(bed, source) as run:
        run.deadline = time.monotonic() + _START_SECONDS
        try:
            way.prepare(run)
            way.push(run, SMALL)
            sent, idle = bed.sent_bytes(SENDER), _Processors()
            run.begin(limit_seconds)
            push = way.push(run, WEIGHTS)
        except RunFailed as failure:
            return Pushed(limit_seconds, 0.0, 0.0, str(failure))
        share = idle.share()
        copies = (bed.sent_bytes(SENDER) - sent) / source.stat().st_size
        wrong = set(push.digests) != {_digest(source)} or len(push.digests) != len(run.receivers)
        failure = f"the receivers' checksums are {push.digests}, not those of what was sent" if wrong else ""
        return Pushed(max(push.held) - push.began, copies, share, failure)


def _digest(path: Path) -> int:
    found = 0
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            found = zlib.crc32(piece, found)
    return found


class _Processors:
    """How much of the machine's processors nobody has used since this was made (proc(5))."""

    def __init__(self) -> None:
        self._then = self._look()

    def share(self) -> float:
        """0 to 1."""
        idle, total = (now - then for now, then in zip(self._look(), self._then, strict=True))
        return idle / total if total else 0.0

    @staticmethod
    def _look() -> tuple[int, int]:
        # Ticks of all processors: user, nice, system, idle, waiting for a disk, interrupts, …
        ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
        return ticks[3] + ticks[4], sum(ticks)
