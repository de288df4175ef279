"""Plan of a trees phase for one of its hosts: parents, children and timeouts."""

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
class TreeTimings:
    """Timeouts in seconds.

    `heartbeat`: interval of heartbeats. `silence`: without one before a neighbor counts as dead. `assembly`: after the
    phase's begin, in which a refusing child may not be ready yet, and is tried again every `retry`. `reach`: the same
    for a child without a connection. `answer`: for a connection, and for its first message. `word`: interval of reports
    to the sender. `slow`: for which a store may accept nothing, or too little.
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
        """Return the parent of this place; NOWHERE for the sender and for hosts outside the tree."""
        return NOWHERE if place == 0 else self.parents[place - 1]

    def children(self, place: int) -> list[int]:
        """Return the children of this place."""
        return [child for child, parent in enumerate(self.parents, 1) if parent == place]

    def height(self) -> int:
        """Return the number of edges between the sender and the farthest host.

        Raise RemoteProtocolError for a cycle, or if the tree passes a host that it does not contain.
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
                raise RemoteProtocolError("Phase has a tree with a cycle, or with a host that it does not contain")
            way.append(place)
            place = self.parents[place - 1]
        for height, further in enumerate(reversed(way), heights[place] + 1):
            heights[further] = height


@dataclass(frozen=True, slots=True)
class TreesPhase:
    """Phase that sends the data from block `first` on along `trees`.

    This host is at `place` in `members`, the sender at 0. `token` authenticates connections between hosts. Raises
    RemoteProtocolError if a value is invalid.
    """

    session: int
    number: int
    token: bytes
    first: int
    members: tuple[Address, ...]
    trees: tuple[PlacedTree, ...]
    place: int
    timings: TreeTimings = field(default_factory=TreeTimings)

    def __post_init__(self) -> None:
        names = {name for name, _, _ in self.members}
        if not 0 <= self.place < len(self.members) <= MAX_MEMBERS or len(names) < len(self.members):
            raise RemoteProtocolError("Phase omits this host, or has too many hosts or a duplicate")
        if self.members[0][0] != SOURCE or any(not 0 < port < 1 << 16 for _, _, port in self.members[1:]):
            raise RemoteProtocolError("Phase has no sender, or a port out of range")
        if len(self.trees) > MAX_TREES:
            raise RemoteProtocolError(f"Phase has {len(self.trees)} trees; the maximum is {MAX_TREES}")
        for tree in self.trees:
            self._check(tree)

    def _check(self, tree: PlacedTree) -> None:
        inside = all(NOWHERE <= parent < len(self.members) for parent in tree.parents)
        if not inside or len(tree.parents) != len(self.members) - 1:
            raise RemoteProtocolError("Phase has an unknown parent")
        if not (math.isfinite(tree.rate) and tree.rate > 0):
            raise RemoteProtocolError("Phase names a tree without a rate")
        tree.height()

    def name(self, place: int) -> str:
        """Return the name of the host at this place."""
        return self.members[place][0]

    def planned(self) -> dict[tuple[int, int], float]:
        """Return the bits/s from each parent to each child, summed over all trees."""
        planned: dict[tuple[int, int], float] = {}
        for tree in self.trees:
            for child, parent in enumerate(tree.parents, 1):
                if parent != NOWHERE:
                    planned[parent, child] = planned.get((parent, child), 0.0) + tree.rate
        return planned
