"""Static trees for recurring groups: splitters fixed between ToRs, without an optical switch (Blast, II-A, II-B).

Model. In every sample the workload's requests compete at one time. A static tree leads from a separate port of one ToR
to separate ports of others, and serves one request at a time: in each sample the heaviest one that starts at its root,
has all its receivers among its leaves, and is not served by another static tree. Candidates are the groups of the
samples. A group that serves a request in only one of several samples does not recur. Trees are bought one after the
other, each time the one with the highest served volume per price. An additional optical switch is not part of this
model.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from heapq import nlargest
from statistics import fmean

from algorithms.b_matching.feasibility import Choose, Pieces
from blast_sim.allocation.instance import Instance, InstanceRequest
from blast_sim.planning.hardware import RACK_PORT, Bill, BillLine, glass
from blast_sim.planning.plan_trees import TreeSplitters, tree_choice
from blast_sim.planning.prices import Prices

MAX_TREES = 8
"""Static trees that are proposed: they are for hot spots."""

MAX_GROUPS = 500
"""Maximum number of groups considered, by volume."""

_Group = tuple[int, frozenset[int]]
"""(rack of the sender, racks of the receivers)"""


@dataclass(frozen=True, slots=True)
class PlannedStaticTree:
    """One tree from the ToR of rack `root` to those of `leaves`; `amplifiers` of its splitters have one before them."""

    root: int
    leaves: tuple[int, ...]
    splitters: Pieces
    amplifiers: int


@dataclass(frozen=True, slots=True)
class StaticTrees:
    """The first trees, their total price, and the share of each sample's volume that they serve."""

    trees: tuple[PlannedStaticTree, ...]
    bill: Bill
    shares: tuple[float, ...]

    @property
    def served(self) -> float:
        """The mean share of the offered volume."""
        return fmean(self.shares)

    @property
    def racks(self) -> int:
        """The number of racks that they join."""
        return len({rack for tree in self.trees for rack in (tree.root, *tree.leaves)})


def static_trees(samples: Sequence[Instance], prices: Prices, max_trees: int = MAX_TREES) -> Iterator[StaticTrees]:
    """Yield the best tree, the best two, … up to `max_trees`, or until no recurring group is left."""
    volumes = [sum(request.weight for request in sample.requests) for sample in samples]
    candidates = list(_candidates(samples, prices))
    bought: list[PlannedStaticTree] = []
    served: list[set[str]] = [set() for _ in samples]
    shares = [0.0] * len(samples)
    while len(bought) < max_trees:
        ranked = [(_worth(one, served, volumes), -place) for place, one in enumerate(candidates)]
        worth, place = max(ranked, default=(0.0, 0))
        if worth <= 0:
            return
        best = candidates[-place]
        bought.append(best.tree)
        for moment, request in enumerate(best.heaviest(served)):
            if request is not None:
                served[moment].add(request.name)
                shares[moment] += request.weight / volumes[moment]
        yield StaticTrees(tuple(bought), _bill(bought, prices), tuple(shares))


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A tree, its price, and per sample the requests that it could serve, the heaviest first."""

    tree: PlannedStaticTree
    price: float
    covered: Sequence[Sequence[InstanceRequest]]

    def heaviest(self, served: Sequence[Set[str]]) -> list[InstanceRequest | None]:
        """Return the request that it serves in each sample, in addition to served ones."""
        left = zip(self.covered, served, strict=True)
        return [next((one for one in covered if one.name not in done), None) for covered, done in left]


def _worth(candidate: _Candidate, served: Sequence[Set[str]], volumes: Sequence[float]) -> float:
    """Return the share of the volume that it adds, for its price."""
    adds = zip(candidate.heaviest(served), volumes, strict=True)
    return fmean(0.0 if one is None else one.weight / volume for one, volume in adds) / max(candidate.price, 1e-9)


def _candidates(samples: Sequence[Instance], prices: Prices) -> Iterator[_Candidate]:
    """Yield trees for recurring groups among those with the highest volume."""
    asked = [_by_sender(sample) for sample in samples]
    volume = defaultdict[_Group, float](float)
    for sample in samples:
        for request in sample.requests:
            volume[request.sender, frozenset(request.receivers)] += request.weight
    splitters = _Glass(prices, max((len(leaves) for _, leaves in volume), default=0))
    for root, leaves in nlargest(MAX_GROUPS, volume, key=volume.__getitem__):
        covered = [[one for one in own.get(root, ()) if leaves.issuperset(one.receivers)] for own in asked]
        # To one receiver goes a fiber and no tree.
        if len(leaves) < 2 or sum(map(bool, covered)) < min(2, len(samples)):
            continue
        found = splitters.of(len(leaves))
        if found is not None:
            tree = PlannedStaticTree(root, tuple(sorted(leaves)), *found)
            yield _Candidate(tree, _bill([tree], prices).price, covered)


def _by_sender(sample: Instance) -> Mapping[int, Sequence[InstanceRequest]]:
    found: defaultdict[int, list[InstanceRequest]] = defaultdict(list)
    for request in sorted(sample.requests, key=lambda request: -request.weight):
        found[request.sender].append(request)
    return found


class _Glass:
    """The cheapest splitters of a tree without an optical switch; amplified if the power is too low."""

    def __init__(self, prices: Prices, max_leaves: int) -> None:
        self._prices, self._max_leaves = prices, max_leaves
        self._choice, self.of = cache(self._find_choice), cache(self._find)

    def _find(self, leaves: int) -> tuple[Pieces, int] | None:
        """Return the splitters and the number of amplifiers of a tree with `leaves` leaves.

        Returns None if no such tree is within the power budget.
        """
        plenty = dict.fromkeys(self._prices.splitters, self._max_leaves)
        passive = self._choice(None)(leaves, plenty)
        if passive is not None:
            return passive, 0
        sizes = self._prices.splitters if self._prices.amplifier else ()
        found = ((pieces, size) for size in sizes if (pieces := self._choice(size)(leaves, plenty)) is not None)
        made = [(pieces, pieces.count(size)) for pieces, size in found]
        return min(made, key=lambda one: _price(glass(Counter(one[0]), one[1], self._prices)), default=None)

    def _find_choice(self, amplified: int | None) -> Choose:
        each = self._prices.amplifier.item.price if self._prices.amplifier else 0.0
        price_of = {
            fan_out: o.item.price + each * (fan_out == amplified) for fan_out, o in self._prices.splitters.items()
        }
        return tree_choice(self._prices, TreeSplitters(price_of, self._max_leaves, 0.0), amplified)


def _price(lines: Iterable[BillLine]) -> float:
    return sum(line.price for line in lines)


def _bill(trees: Sequence[PlannedStaticTree], prices: Prices) -> Bill:
    splitters = Counter(fan_out for tree in trees for fan_out in tree.splitters)
    ends = BillLine(RACK_PORT, sum(1 + len(tree.leaves) for tree in trees), prices.rack_port)
    return Bill((ends, *glass(splitters, sum(tree.amplifiers for tree in trees), prices)))
