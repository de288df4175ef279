"""A phase along trees as one of its hosts wants it: who receives from whom, and how long anybody waits."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from blast_transport.base.errors import RemoteProtocolError
from blast_transport.links.dialling import SOURCE, Address

MAX_TREES = 1 << 10
MAX_MEMBERS = 1 << 12
NOWHERE = -1
"""In place of a parent: the tree does not enter this host."""


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds that a host waits.

    `heartbeat`: between two signs of life. `silence`: without one before a neighbor is dead. `assembly`: after the
    phase's begin, in which a child that refuses may just not be there yet, and is tried again every `retry`. `reach`:
    the same for one to which there is no connection. `answer`: for a connection, and for what is first said on it.
    `word`: between two words to the sender. `slow`: for which a store may take nothing, or too little.
    """

    heartbeat: float = 0.2
    silence: float = 1.0
    assembly: float = 2.0
    reach: float = 0.5
    retry: float = 0.05
    answer: float = 1.0
    word: float = 0.25
    slow: float = 1.5


@dataclass(frozen=True, slots=True)
class PlacedTree:
    """A tree of `rate` bits/s: the place of each member's parent, from member 1 on; 0 is the sender."""

    rate: float
    parents: tuple[int, ...]

    def parent(self, place: int) -> int:
        """Of whoever stands there, NOWHERE for the sender and for whom the tree does not enter."""
        return NOWHERE if place == 0 else self.parents[place - 1]

    def children(self, place: int) -> list[int]:
        """Who receives from whoever stands there."""
        return [child for child, parent in enumerate(self.parents, 1) if parent == place]

    def height(self) -> int:
        """Edges between the sender and the farthest host.

        Raises RemoteProtocolError for a circle, and where it passes a host that it does not enter.
        """
        heights = {0: 0}
        for place, parent in enumerate(self.parents, 1):
            if parent != NOWHERE:
                self._climb(place, heights)
        return max(heights.values())

    def _climb(self, place: int, heights: dict[int, int]) -> None:
        way: list[int] = []
        while place not in heights:
            if place == NOWHERE or len(way) > len(self.parents):
                raise RemoteProtocolError(
                    "Phase names a tree that goes round in a circle, or passes whom it leaves out"
                )
            way.append(place)
            place = self.parents[place - 1]
        for height, further in enumerate(reversed(way), heights[place] + 1):
            heights[further] = height


@dataclass(frozen=True, slots=True)
class TreesPhase:
    """From block `first` on the data goes along `trees`; we stand at `place` among `members`, the sender at 0.

    `token` lets in those that others connect to. Raises RemoteProtocolError for what no sender may say.
    """

    session: int
    number: int
    token: bytes
    first: int
    members: tuple[Address, ...]
    trees: tuple[PlacedTree, ...]
    place: int
    timings: Timings = field(default_factory=Timings)

    def __post_init__(self) -> None:
        names = {name for name, _, _ in self.members}
        if not 0 <= self.place < len(self.members) <= MAX_MEMBERS or len(names) < len(self.members):
            raise RemoteProtocolError("Phase has no place for us, too many hosts, or one twice")
        if self.members[0][0] != SOURCE or any(not 0 < port < 1 << 16 for _, _, port in self.members[1:]):
            raise RemoteProtocolError("Phase has no sender, or a port out of range")
        if len(self.trees) > MAX_TREES:
            raise RemoteProtocolError(f"Phase has {len(self.trees)} trees; the most are {MAX_TREES}")
        for tree in self.trees:
            self._check(tree)

    def _check(self, tree: PlacedTree) -> None:
        inside = all(NOWHERE <= parent < len(self.members) for parent in tree.parents)
        if not inside or len(tree.parents) != len(self.members) - 1:
            raise RemoteProtocolError("Phase names a parent that there is not")
        if not (math.isfinite(tree.rate) and tree.rate > 0):
            raise RemoteProtocolError("Phase names a tree without a rate")
        tree.height()

    def name(self, place: int) -> str:
        """Of whoever stands there."""
        return self.members[place][0]

    def planned(self) -> dict[tuple[int, int], float]:
        """Bits/s from each parent to each child, of all trees together."""
        planned: dict[tuple[int, int], float] = {}
        for tree in self.trees:
            for child, parent in enumerate(tree.parents, 1):
                if parent != NOWHERE:
                    planned[parent, child] = planned.get((parent, child), 0.0) + tree.rate
        return planned
