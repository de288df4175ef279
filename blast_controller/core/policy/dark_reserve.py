"""The share of idle pieces to keep dark, so that a new tree need not wait for a teardown."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

from blast_controller.core.inventory.inventory import Inventory
from blast_controller.core.model.identifiers import SwitchId


def reserve_of(idle: int, share: float) -> int:
    """Return how many of these idle pieces of a kind must be dark: their `share`, in whole pieces."""
    return math.floor(share * idle)


@dataclass(frozen=True, slots=True)
class DarkReserve:
    """Idle pieces of a switch: splitters of this fan-out, or (0) ports of all racks; `reserve` must be dark."""

    switch: SwitchId
    fan_out: int
    dark: int
    lit: int
    reserve: int


def dark_reserves(inventory: Inventory, share: float) -> list[DarkReserve]:
    """Return all reserves for display; the ports of all racks are summed."""
    sums: defaultdict[tuple[SwitchId, int], list[int]] = defaultdict(lambda: [0, 0, 0])
    for kind, idle in (+inventory.idle).items():
        found, dark = sums[kind.switch, kind.fan_out], inventory.dark[kind]
        found[:] = (found[0] + dark, found[1] + idle - dark, found[2] + reserve_of(idle, share))
    return [DarkReserve(switch, fan_out, *found) for (switch, fan_out), found in sorted(sums.items())]
