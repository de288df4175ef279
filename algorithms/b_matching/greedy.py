"""The paper's greedy for maximum weighted hyper-graph b-matching (Blast, section III-C.2)."""

from __future__ import annotations

from collections.abc import Iterable

from algorithms.b_matching.feasibility import Feasibility, Pieces
from algorithms.b_matching.group import Group

Selection = list[tuple[Group, Pieces]]
"""The groups to serve, in the order in which they were picked, each with the splitters of its tree."""


def score(group: Group) -> float:
    """Traffic volume per optical port: volume divided by the number of racks."""
    return group.weight / group.racks


def select(groups: Iterable[Group], feasibility: Feasibility) -> Selection:
    """The groups to serve now, best score first; equal scores keep their order. `feasibility` is used up.

    One pass is enough: resources only shrink, so a group that does not fit never fits later in the pass.
    """
    return select_in_order(sorted(groups, key=score, reverse=True), feasibility)


def select_in_order(groups: Iterable[Group], feasibility: Feasibility) -> Selection:
    """Every group that fits when its turn comes, in the order given. `feasibility` is used up."""
    selected: Selection = []
    for group in groups:
        # This is `fit`, with no call for the many groups that lack a port.
        if not feasibility.full & group.ports and (pieces := feasibility.splitters(group.leaves)) is not None:
            feasibility.take(group, pieces)
            selected.append((group, pieces))
    return selected
