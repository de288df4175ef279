"""What is left of the fabric, as the matching sees it: ports per rack and splitters per size, on each switch."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from algorithms.splitter_tree import choose_splitters


@dataclass(frozen=True, slots=True)
class Group:
    """A multicast group as a hyper-edge.

    `racks` holds the racks that need an optical port (the sender's included), `leaves` how many ends the splitter
    tree must have, `volume` the paper's weight: data times receivers, any unit.
    """

    name: Hashable
    racks: frozenset[str]
    leaves: int
    volume: float


@dataclass(frozen=True, slots=True)
class Choice:
    """How a group is served: on this switch, with splitters of these sizes."""

    switch: str
    ways: tuple[int, ...]


class Residual:
    """Free optical ports and splitters. A tree lies on one optical switch.

    `ports` maps switch to rack to free ports; `splitters` maps switch to ways to free splitters.
    """

    def __init__(
        self,
        ports: Mapping[str, Mapping[str, int]],
        splitters: Mapping[str, Mapping[int, int]],
        most_splitters: int | None = None,
    ) -> None:
        self._ports = {switch: dict(racks) for switch, racks in ports.items()}
        self._splitters = {switch: dict(sizes) for switch, sizes in splitters.items()}
        self._most_splitters = most_splitters

    def fit(self, group: Group) -> Choice | None:
        """The first switch that can serve `group` with what is left, and the splitters to take; None if none can."""
        for switch, free in self._ports.items():
            if all(free.get(rack, 0) > 0 for rack in group.racks):
                ways = choose_splitters(group.leaves, self._splitters.get(switch, {}), self._most_splitters)
                if ways is not None:
                    return Choice(switch, ways)
        return None

    def take(self, group: Group, choice: Choice) -> None:
        """Account for `group` being served as `choice` says."""
        ports, splitters = self._ports[choice.switch], self._splitters.get(choice.switch, {})
        for rack in group.racks:
            ports[rack] -= 1
        for ways in choice.ways:
            splitters[ways] -= 1
