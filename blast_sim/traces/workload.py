"""What every trace becomes: multicasts between racks, and shuffles beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Multicast:
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
    """What happens on so many racks, in order of arrival; `rules` say how it was derived, for the results."""

    racks: int
    multicasts: tuple[Multicast, ...]
    shuffles: tuple[Shuffle, ...]
    rules: Mapping[str, str | int | float]
