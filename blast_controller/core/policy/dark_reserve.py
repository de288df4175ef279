"""How much of what nobody uses is to be dark, so that it may be lit without taking a lit tree down first."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

from blast_controller.core.inventory.inventory import Inventory
from blast_controller.core.model.identifiers import SwitchId


def reserve_of(idle: int, share: float) -> int:
    """How many of so many idle pieces of a kind are to be dark: their `share`, in whole pieces."""
    return math.floor(share * idle)


@dataclass(frozen=True, slots=True)
class DarkReserve:
    """Idle pieces of a switch: splitters of so many ways, or (0) the ports of all racks; `reserve` are to be dark."""

    switch: SwitchId
    fan_out: int
    dark: int
    lit: int
    reserve: int


def dark_reserves(inventory: Inventory, share: float) -> list[DarkReserve]:
    """All of it, for people: the ports of one rack are not told from those of another."""
    sums: defaultdict[tuple[SwitchId, int], list[int]] = defaultdict(lambda: [0, 0, 0])
    for kind, idle in (+inventory.idle.counts).items():
        found, dark = sums[kind.switch, kind.fan_out], inventory.dark.counts[kind]
        found[:] = (found[0] + dark, found[1] + idle - dark, found[2] + reserve_of(idle, share))
    return [DarkReserve(switch, fan_out, *found) for (switch, fan_out), found in sorted(sums.items())]
