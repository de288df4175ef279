"""The options of an allocation: each group with each set of splitters that could serve it.

With one size of splitter a group has one option, the paper's m splitters. With a mixed pool it has one for every
minimal set of sizes that covers its leaves. The choice of splitters and the choice of groups are then one decision: a
set packing whose scarce resources are port vertices and splitter sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from algorithms.b_matching.covers import MAX_COVERS, covers
from algorithms.b_matching.feasibility import Feasibility, Pieces
from algorithms.b_matching.group import CompetingGroup


@dataclass(frozen=True, slots=True)
class Options:
    """The options and their common resources.

    Entry j of `owners`, `pieces`, `uses`, `ports`, `vertices` and `weights` describes option j.

    Parameters
    ----------
    groups : sequence of Group
        The competing groups.
    owners : list of int
        Place in `groups` of the group that each option serves.
    pieces : list of Pieces
        Fan-outs of the splitters of each option.
    uses : list of tuple of int
        Number of splitters of each of the `sizes` that each option takes.
    ports : list of int
        Port vertices of each option's group, as bits.
    vertices : list of list of int
        The same vertices as numbers, in ascending order.
    weights : list of float
        Weight of each option, at first that of its group.
    budgets : list of int
        Free ports of each vertex, not below 0, up to the highest vertex of an option.
    sizes : tuple of int
        Fan-outs of the splitters, in ascending order.
    supply : tuple of int
        Number of free splitters of each of the `sizes`.
    complete : bool
        False if a group had `covers.MAX_COVERS` sets of splitters or more, so that some may have been left out.
    """

    groups: Sequence[CompetingGroup]
    owners: list[int]
    pieces: list[Pieces]
    uses: list[tuple[int, ...]]
    ports: list[int]
    vertices: list[list[int]]
    weights: list[float]
    budgets: list[int]
    sizes: tuple[int, ...]
    supply: tuple[int, ...]
    complete: bool

    def __len__(self) -> int:
        return len(self.owners)

    def total(self, selected: Iterable[int]) -> float:
        """Return the total weight of several options.

        Parameters
        ----------
        selected : iterable of int
            Numbers of the options.

        Returns
        -------
        float
            In the unit of the weights.
        """
        return sum(map(self.weights.__getitem__, selected))

    def keep(self, kept: Sequence[int]) -> Options:
        """Return a copy with these options only.

        Parameters
        ----------
        kept : sequence of int
            Numbers of the options to keep, in the order of the copy.

        Returns
        -------
        Options
            With the same groups, budgets and supply.
        """
        return replace(
            self,
            owners=[self.owners[j] for j in kept],
            pieces=[self.pieces[j] for j in kept],
            uses=[self.uses[j] for j in kept],
            ports=[self.ports[j] for j in kept],
            vertices=[self.vertices[j] for j in kept],
            weights=[self.weights[j] for j in kept],
        )


def options(groups: Sequence[CompetingGroup], feasibility: Feasibility) -> Options:
    """Return all options with a positive weight of groups that `feasibility` could serve alone.

    Parameters
    ----------
    groups : sequence of Group
        The competing groups, in any order; all weights in the same unit.
    feasibility : Feasibility
        Free ports per vertex and splitters per size. Not modified.

    Returns
    -------
    Options
        `complete` is True if every minimal set of splitters is included.

    Notes
    -----
    O(groups * min(minimal sets of splitters, `covers.MAX_COVERS`)). The sets are computed once for each number of
    leaves.

    Examples
    --------
    >>> from algorithms.b_matching.feasibility import Feasibility
    >>> from algorithms.b_matching.group import CompetingGroup, shared_ports
    >>> groups = [
    ...     CompetingGroup("wide", shared_ports(0, [1, 2, 3]), 4, 3, 900.0),
    ...     CompetingGroup("pair", shared_ports(3, [4]), 2, 1, 100.0),
    ... ]
    >>> free = Feasibility([1, 1, 1, 1, 1], {4: 1})
    >>> choices = options(groups, free)
    >>> choices.pieces, choices.weights, choices.complete
    ([(4,), ()], [900.0, 100.0], True)
    """
    sizes = tuple(sorted(fan_out for fan_out, count in feasibility.pool.items() if count > 0))
    supply = tuple(feasibility.pool[fan_out] for fan_out in sizes)
    owners, kinds = list[int](), list[tuple[Pieces, tuple[int, ...]]]()
    trees: dict[int, list[tuple[Pieces, tuple[int, ...]]]] = {}
    full = feasibility.full
    for number, group in enumerate(groups):
        if group.weight <= 0 or full & group.ports:
            continue
        if group.leaves not in trees:
            trees[group.leaves] = [(c, tuple(map(c.count, sizes))) for c in covers(group.leaves, feasibility)]
        kinds += trees[group.leaves]
        owners += [number] * len(trees[group.leaves])
    ports = [groups[owner].ports for owner in owners]
    return Options(
        groups,
        owners,
        [pieces for pieces, _ in kinds],
        [used for _, used in kinds],
        ports,
        _vertices(ports),
        [groups[owner].weight for owner in owners],
        [max(0, feasibility.left(vertex)) for vertex in range(max(map(int.bit_length, ports), default=0))],
        sizes,
        supply,
        all(len(found) < MAX_COVERS for found in trees.values()),
    )


def _vertices(sets: Sequence[int]) -> list[list[int]]:
    """Return the members of every set in ascending order: `group.members` for thousands of sets at once."""
    width = -(-max(map(int.bit_length, sets), default=0) // 8)
    octets = np.frombuffer(b"".join(bits.to_bytes(width, "little") for bits in sets), np.uint8)
    filled = np.flatnonzero(octets)
    place, bit = np.nonzero(np.unpackbits(octets[filled, np.newaxis], axis=1, bitorder="little"))
    number, octet = np.divmod(filled[place], max(1, width))
    members = (octet * 8 + bit).tolist()
    return [members[first:last] for first, last in pairwise(np.searchsorted(number, np.arange(len(sets) + 1)).tolist())]
