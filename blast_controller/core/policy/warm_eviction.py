"""Order of eviction of warm trees, for each kind of pieces that they hold.

Trees whose group is not trusted to return before others need its pieces come first, oldest first. Then the overdue ones
follow, longest overdue first; then the one that is expected last. Evicting the oldest first would be worst where jobs
alternate: it is the next one to be requested.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict, defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field

from blast_controller.core.inventory.kinds import PieceKind


@dataclass(slots=True)
class _Holders:
    """The trees that hold pieces of one kind: newcomers in the order in which they came, others by (due, number)."""

    newcomers: OrderedDict[int, None] = field(default_factory=OrderedDict)
    trusted: list[tuple[float, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _EvictionPlace:
    kinds: Collection[PieceKind]
    due: float | None


class EvictionOrder:
    """Trees by number. `due` is when a group that is trusted to come back is overdue; None: it is not trusted."""

    def __init__(self) -> None:
        self._places: dict[int, _EvictionPlace] = {}
        self._holders: defaultdict[PieceKind, _Holders] = defaultdict(_Holders)

    def add(self, number: int, kinds: Collection[PieceKind], due: float | None) -> None:
        """Add a warm tree that holds pieces of these kinds."""
        self._places[number] = _EvictionPlace(kinds, due)
        for kind in kinds:
            if due is None:
                self._holders[kind].newcomers[number] = None
            else:
                insort(self._holders[kind].trusted, (due, number))

    def remove(self, number: int) -> None:
        """Remove a tree, if it is known."""
        place = self._places.pop(number, None)
        for kind in place.kinds if place is not None else ():
            holders = self._holders[kind]
            if place is None or place.due is None:
                del holders.newcomers[number]
            else:
                del holders.trusted[bisect_left(holders.trusted, (place.due, number))]

    def is_trusted(self, number: int) -> bool:
        """Return true if the group of a warm tree is trusted to return."""
        return self._places[number].due is not None

    def newcomer(self, kind: PieceKind) -> int | None:
        """Return the first to go of those whose group is not trusted."""
        return next(iter(self._holders[kind].newcomers), None) if kind in self._holders else None

    def trusted(self, kind: PieceKind, now: float) -> int | None:
        """Return the first to go of those whose group is."""
        held = self._holders[kind].trusted if kind in self._holders else []
        if not held:
            return None
        return (held[0] if held[0][0] <= now else held[-1])[1]

    def __len__(self) -> int:
        return len(self._places)
