"""Who of the trees that are kept lit gives way first, for each kind of pieces that they hold.

First those whose group is not trusted to come back before others need its pieces, the oldest of them first. Of the
others those that are overdue, the longest first; then the one that is expected back last. To take the oldest first
would be the worst of all where jobs take turns: it is the next to be asked for again.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict, defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field

from blast_controller.core.inventory.kinds import Kind


@dataclass(slots=True)
class _Holders:
    """The trees that hold pieces of one kind: newcomers in the order in which they came, others by (due, number)."""

    newcomers: OrderedDict[int, None] = field(default_factory=OrderedDict)
    trusted: list[tuple[float, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Place:
    kinds: Collection[Kind]
    due: float | None


class GivingWay:
    """Trees by number. `due` is when a group that is trusted to come back is overdue; None: it is not trusted."""

    def __init__(self) -> None:
        self._places: dict[int, _Place] = {}
        self._holders: defaultdict[Kind, _Holders] = defaultdict(_Holders)

    def add(self, number: int, kinds: Collection[Kind], due: float | None) -> None:
        """A tree that holds pieces of these kinds is kept lit from now on."""
        self._places[number] = _Place(kinds, due)
        for kind in kinds:
            if due is None:
                self._holders[kind].newcomers[number] = None
            else:
                insort(self._holders[kind].trusted, (due, number))

    def remove(self, number: int) -> None:
        """It is not any longer; it may never have been."""
        place = self._places.pop(number, None)
        for kind in place.kinds if place is not None else ():
            holders = self._holders[kind]
            if place is None or place.due is None:
                del holders.newcomers[number]
            else:
                del holders.trusted[bisect_left(holders.trusted, (place.due, number))]

    def is_trusted(self, number: int) -> bool:
        """Whether the group of a tree that is kept lit is trusted to come back."""
        return self._places[number].due is not None

    def newcomer(self, kind: Kind) -> int | None:
        """The first to go of those whose group is not trusted."""
        return next(iter(self._holders[kind].newcomers), None) if kind in self._holders else None

    def trusted(self, kind: Kind, now: float) -> int | None:
        """The first to go of those whose group is."""
        held = self._holders[kind].trusted if kind in self._holders else []
        if not held:
            return None
        return (held[0] if held[0][0] <= now else held[-1])[1]

    def __len__(self) -> int:
        return len(self._places)
