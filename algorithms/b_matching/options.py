"""What an allocation can choose from: each group together with each set of splitters that could serve it.

With one size of splitter a group has one option, the paper's m splitters. With a mixed pool it has one for every
minimal set of sizes that covers its leaves, so that "which splitters" and "which groups" are one decision: a set
packing in which port vertices and splitter sizes are the things that run out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from algorithms.b_matching.feasibility import Feasibility, Pieces
from algorithms.b_matching.group import Group, members

MOST_COVERS = 64
"""Sets of splitters considered for one number of leaves, those with the fewest splitters first."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options and what they share.

    Option j serves `groups[owners[j]]`, worth `weights[j]`, with `pieces[j]`, which takes `uses[j][s]` splitters of
    size `sizes[s]`, of which there are `supply[s]`. `vertices[j]` are the group's port vertices, `budgets` the free
    ports of each. `complete` says that no set of splitters was left out for its group having too many.
    """

    groups: Sequence[Group]
    owners: list[int]
    pieces: list[Pieces]
    uses: list[tuple[int, ...]]
    vertices: list[list[int]]
    weights: list[float]
    budgets: list[int]
    sizes: tuple[int, ...]
    supply: tuple[int, ...]
    complete: bool

    def __len__(self) -> int:
        return len(self.owners)

    def total(self, selected: Iterable[int]) -> float:
        """The weight of several options together."""
        return sum(map(self.weights.__getitem__, selected))

    def keep(self, wanted: Sequence[int]) -> Options:
        """These options only."""
        return replace(
            self,
            owners=[self.owners[j] for j in wanted],
            pieces=[self.pieces[j] for j in wanted],
            uses=[self.uses[j] for j in wanted],
            vertices=[self.vertices[j] for j in wanted],
            weights=[self.weights[j] for j in wanted],
        )

    def ports(self, option: int) -> int:
        """The port vertices of this option's group, as bits."""
        return self.groups[self.owners[option]].ports


def options(groups: Sequence[Group], feasibility: Feasibility) -> Options:
    """All options of those `groups` that `feasibility` could serve alone and that are worth something."""
    sizes = tuple(sorted(ways for ways, count in feasibility.pool.items() if count > 0))
    supply = tuple(feasibility.pool[ways] for ways in sizes)
    made = Options(groups, [], [], [], [], [], [], sizes, supply, True)
    trees: dict[int, list[tuple[Pieces, tuple[int, ...]]]] = {}
    highest = 0
    for number, group in enumerate(groups):
        highest = max(highest, group.ports.bit_length())
        if group.weight <= 0 or feasibility.full & group.ports:
            continue
        if group.leaves not in trees:
            trees[group.leaves] = [(c, tuple(map(c.count, sizes))) for c in covers(group.leaves, feasibility)]
        found = members(group.ports)
        for pieces, used in trees[group.leaves]:
            made.owners.append(number)
            made.pieces.append(pieces)
            made.uses.append(used)
            made.vertices.append(found)
            made.weights.append(group.weight)
    made.budgets.extend(max(0, feasibility.left(vertex)) for vertex in range(highest))
    return replace(made, complete=all(len(found) < MOST_COVERS for found in trees.values()))


def covers(leaves: int, feasibility: Feasibility) -> list[Pieces]:
    """The sets of splitters, none with a splitter to spare, with which a tree of so many leaves can be built."""
    preferred = feasibility.splitters(leaves)
    pool = sorted(((ways, count) for ways, count in feasibility.pool.items() if count > 0), reverse=True)
    if not preferred or len(pool) == 1:
        return [] if preferred is None else [preferred]
    found = [tuple(sorted(preferred))]
    trial = feasibility.copy()
    for pieces in islice(_minimal(leaves - 1, pool), MOST_COVERS):
        trial.pool.clear()
        trial.pool.update(Counter(pieces))
        built = trial.splitters(leaves)
        if built is not None and tuple(sorted(built)) not in found:
            found.append(tuple(sorted(built)))
    return found


def _minimal(need: int, pool: Sequence[tuple[int, int]], taken: Pieces = ()) -> Iterator[Pieces]:
    """The sets from `pool` (ways and count, largest first) whose ways less one add up to `need`, none superfluous."""
    if need <= 0:
        yield taken
        return
    if not pool:
        return
    (ways, count), smaller = pool[0], pool[1:]
    for number in range(min(count, -(-need // (ways - 1))), -1, -1):
        yield from _minimal(need - number * (ways - 1), smaller, taken + (ways,) * number)
