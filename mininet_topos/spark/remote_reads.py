"""Broadcast data that executors fetched from other executors or the driver, from their logs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mininet_topos.spark.event_log import SparkEventLog

_FETCH = re.compile(rb"Getting remote block broadcast_(\d+)_piece(\d+)")

Piece = tuple[int, int]
"""The broadcast and the number of the piece in it."""


@dataclass(frozen=True)
class RemoteReads:
    """The number of executors that fetched each piece over the network."""

    pieces: Counter[Piece]

    def bytes_of(self, log: SparkEventLog) -> int:
        """Return the bytes of all pieces that were fetched in this way, by all executors together."""
        sizes = {broadcast.id: broadcast.pieces for broadcast in log.broadcasts}
        return sum(count * sizes.get(one, {}).get(number, 0) for (one, number), count in self.pieces.items())


def read_remote_reads(logs: Iterable[Path]) -> RemoteReads:
    """Count them in the executors' logs, one each; Spark's `BlockManager` must log at level debug."""
    pieces: Counter[Piece] = Counter()
    for log in logs:
        pieces.update(_fetched(log))
    return RemoteReads(pieces)


def _fetched(log: Path) -> set[Piece]:
    """Return the fetched pieces; Spark logs each more than once."""
    with log.open("rb") as lines:
        return {(int(found[1]), int(found[2])) for line in lines if (found := _FETCH.search(line))}
