"""What is left of the fabric, as the matching sees it: ports per rack and splitters per size, on each switch."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from algorithms.splitter_tree import choose_splitters


@dataclass(frozen=True, slots=True)
class Group:
    """A multicast group as a hyper-edge.

    `racks` holds the racks that need an optical port (the sender's included), `leaves` how many ends the splitter
    tree must have, `volume` the paper's weight: data times receivers, any unit; `tenant` whose allowance it uses.
    """

    name: Hashable
    racks: frozenset[str]
    leaves: int
    volume: float
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """How a group is served: on this switch, with splitters of these sizes."""

    switch: str
    fan_out: tuple[int, ...]


class Residual:
    """Free optical ports and splitters. A tree lies on one optical switch.

    `ports` maps switch to rack to free ports; `splitters` maps switch to ways to free splitters; `allowance` maps
    limited tenants to the splitters they may still take, -1 where they may have no light at all.
    """

    def __init__(
        self,
        ports: Mapping[str, Mapping[str, int]],
        splitters: Mapping[str, Mapping[int, int]],
        max_splitters_per_tree: int | None = None,
        allowance: Mapping[str, int] | None = None,
    ) -> None:
        self._ports = {switch: dict(racks) for switch, racks in ports.items()}
        self._splitters = {switch: dict(sizes) for switch, sizes in splitters.items()}
        self._max_splitters_of = max_splitters_per_tree
        self._allowance = dict(allowance or {})

    def fit(self, group: Group) -> Choice | None:
        """The first switch that can serve `group` with what is left, and the splitters to take; None if none can."""
        most = self._most(group.tenant)
        if most is not None and most < 0:
            return None
        for switch, free in self._ports.items():
            if all(free.get(rack, 0) > 0 for rack in group.racks):
                fan_out = choose_splitters(group.leaves, self._splitters.get(switch, {}), most)
                if fan_out is not None:
                    return Choice(switch, fan_out)
        return None

    def _most(self, tenant: str) -> int | None:
        limits = [n for n in (self._max_splitters_of, self._allowance.get(tenant)) if n is not None]
        return min(limits, default=None)

    def take(self, group: Group, choice: Choice) -> None:
        """Account for `group` being served as `choice` says."""
        ports, splitters = self._ports[choice.switch], self._splitters.get(choice.switch, {})
        for rack in group.racks:
            ports[rack] -= 1
        for fan_out in choice.fan_out:
            splitters[fan_out] -= 1
        if group.tenant in self._allowance:
            self._allowance[group.tenant] -= len(choice.fan_out)
