"""The idle pieces of every switch and the reserve that is dark of them, kept up to date kind by kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from immutables import Map

from blast_controller.core.inventory.inventory import Inventory
from blast_controller.core.inventory.kinds import PieceKind
from blast_controller.core.model.identifiers import SwitchId
from blast_controller.core.policy.dark_reserve import DarkReserve, reserve_of


class Reserves:
    """Sums over kinds for display: the ports of all racks count together.

    The numbers of dark and lit pieces and the reserve are kept for each kind; `latest` has their sums by switch and
    fan-out and is immutable.
    """

    def __init__(self, inventory: Inventory) -> None:
        self.latest: Map[tuple[SwitchId, int], DarkReserve] = Map()
        self._inventory = inventory
        self._share = 0.0
        self._of: dict[PieceKind, tuple[int, int, int]] = {}
        self._sums: defaultdict[tuple[SwitchId, int], list[int]] = defaultdict(lambda: [0, 0, 0])

    def count(self, changed: Iterable[PieceKind], share: float) -> None:
        """Update the sums for changed kinds and the share to keep dark."""
        if share != self._share:
            self._share, changed = share, {*changed, *self._of}
        idle_of, dark_of = self._inventory.idle, self._inventory.dark
        places = set()
        for kind in changed:
            idle, dark = idle_of[kind], dark_of[kind]
            old_dark, old_lit, old_reserve = self._of.get(kind, (0, 0, 0))
            lit, reserve = idle - dark, reserve_of(idle, share)
            self._of[kind] = dark, lit, reserve
            place = kind.switch, kind.fan_out
            places.add(place)
            sums = self._sums[place]
            sums[0] += dark - old_dark
            sums[1] += lit - old_lit
            sums[2] += reserve - old_reserve
        for place in places:
            dark, lit, reserve = self._sums[place]
            if dark or lit:
                self.latest = self.latest.set(place, DarkReserve(*place, dark, lit, reserve))
            elif place in self.latest:
                self.latest = self.latest.delete(place)
