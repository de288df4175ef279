"""The common form of all traces: multicasts between racks, and shuffles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class TraceMulticast:
    """A request at `arrival` (seconds) to send `bytes` from one rack to others."""

    name: str
    arrival: float
    sender: int
    receivers: tuple[int, ...]
    bytes: int


@dataclass(frozen=True, slots=True)
class Shuffle:
    """Every receiver fetches its `bytes` from all senders, equal parts from each.

    It begins at `arrival` (seconds), or when the multicast `after` is done.
    """

    name: str
    arrival: float
    senders: tuple[int, ...]
    receivers: tuple[int, ...]
    bytes: tuple[int, ...]
    after: str | None = None


@dataclass(frozen=True, slots=True)
class Workload:
    """The events on `racks` racks, in order of arrival; `rules` records how it was derived."""

    racks: int
    multicasts: tuple[TraceMulticast, ...]
    shuffles: tuple[Shuffle, ...]
    rules: Mapping[str, str | int | float]
