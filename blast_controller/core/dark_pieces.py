"""What nobody uses, by kind: how much of it is dark, and may be lit without taking a lit tree down first."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from blast_controller.core.fabric import OpticalPort
from blast_controller.core.identifiers import ElementId, SwitchId
from blast_controller.core.tally import Piece


class Kind(NamedTuple):
    """Pieces of one switch that do for each other: splitters of so many `ways`, or ports for an `end` of trees."""

    switch: SwitchId
    ways: int
    end: str


def kind_of(piece: Piece) -> Kind:
    """The kind of a piece."""
    if isinstance(piece, OpticalPort):
        return Kind(piece.switch, 0, piece.end)
    return Kind(piece.switch, piece.ways, "")


@dataclass(frozen=True, slots=True)
class Stock:
    """Idle pieces of a switch: splitters of so many ways, or (0) the ports of all racks; `reserve` are to be dark."""

    switch: SwitchId
    ways: int
    dark: int
    lit: int
    reserve: int


@dataclass(slots=True)
class DarkPieces:
    """Counts of pieces in service that no transfer uses, kept up to date piece by piece.

    `idle` counts all of them, `dark` those that are dark or about to be; the others are in trees that are kept lit.
    A device that is away makes no difference: what was kept lit is not to go because a controller has just started.
    `changed` are, by switch, the kinds whose counts have changed since somebody has looked.
    """

    idle: Counter[Kind] = field(default_factory=Counter)
    dark: Counter[Kind] = field(default_factory=Counter)
    changed: defaultdict[SwitchId, set[Kind]] = field(default_factory=lambda: defaultdict(set))
    _counted: dict[ElementId, tuple[Kind, bool]] = field(default_factory=dict)

    def put(self, element: ElementId, kind: Kind | None, lit: bool) -> None:
        """From now on count an element as this, in a tree that is kept lit or not; as nothing if `kind` is None."""
        before, after = self._counted.pop(element, None), None if kind is None else (kind, lit)
        if after is not None:
            self._counted[element] = after
        if before == after:
            return
        for counted, step in ((before, -1), (after, 1)):
            if counted is not None:
                self._count(*counted, step)

    def _count(self, kind: Kind, lit: bool, step: int) -> None:
        self.idle[kind] += step
        self.dark[kind] += 0 if lit else step
        self.changed[kind.switch].add(kind)

    def look_anew(self) -> None:
        """Count every kind as changed."""
        for kind in self.idle:
            self.changed[kind.switch].add(kind)

    def reserve(self, kind: Kind, share: float) -> int:
        """How many pieces of a kind are to be dark, of so many: their `share`, in whole pieces."""
        return math.floor(share * self.idle[kind])

    def stocks(self, share: float) -> list[Stock]:
        """All of it, for people: the ports of one rack are not told from those of another."""
        sums: defaultdict[tuple[SwitchId, int], list[int]] = defaultdict(lambda: [0, 0, 0])
        for kind, idle in (+self.idle).items():
            found, dark = sums[kind.switch, kind.ways], self.dark[kind]
            found[:] = (found[0] + dark, found[1] + idle - dark, found[2] + self.reserve(kind, share))
        return [Stock(switch, ways, *found) for (switch, ways), found in sorted(sums.items())]
