"""The paper's greedy for maximum weighted hyper-graph b-matching (Blast, section III-C.2)."""

from __future__ import annotations

from collections.abc import Iterable

from algorithms.b_matching.feasibility import Feasibility, Pieces
from algorithms.b_matching.group import Group

Selection = list[tuple[Group, Pieces]]
"""The groups to serve, in the order in which they were picked, each with the splitters of its tree."""


def score(group: Group) -> float:
    """Traffic volume per optical port: volume divided by the number of racks (Blast, section III-C.2).

    Parameters
    ----------
    group : Group
        Its weight is the volume, data times receivers, in any unit.

    Returns
    -------
    float
        In that unit per rack.

    Examples
    --------
    >>> from algorithms.b_matching.group import Group
    >>> score(Group("a", ports=0b1111, racks=4, leaves=3, weight=900.0))
    225.0
    """
    return group.weight / group.racks


def select(groups: Iterable[Group], feasibility: Feasibility) -> Selection:
    """The groups to serve now, best score first; equal scores keep their order.

    One pass is enough: resources only shrink, so a group that does not fit never fits later in the pass.

    Parameters
    ----------
    groups : iterable of Group
        Those that compete.
    feasibility : Feasibility
        What is free. It is used up.

    Returns
    -------
    list of (Group, splitters)
        Who is served, in the order of the choice; splitters are their ways.

    Notes
    -----
    O(n log n + n * racks / 64) for n groups. At least 1 / r of the optimum where no group joins more than r racks, one
    port counts and splitters do not bind (Blast, section III-C.2).

    Examples
    --------
    >>> from algorithms.b_matching.feasibility import Feasibility
    >>> from algorithms.b_matching.group import Group, shared_ports
    >>> groups = [
    ...     Group("wide", shared_ports(0, [1, 2, 3]), 4, 3, 900.0),
    ...     Group("pair", shared_ports(3, [4]), 2, 1, 100.0),
    ... ]
    >>> free = Feasibility([1, 1, 1, 1, 1], {4: 1})
    >>> [(group.name, splitters) for group, splitters in select(groups, free)]
    [('wide', (4,))]
    """
    return select_in_order(sorted(groups, key=score, reverse=True), feasibility)


def select_in_order(groups: Iterable[Group], feasibility: Feasibility) -> Selection:
    """Every group that fits when its turn comes, in the order given.

    Parameters
    ----------
    groups : iterable of Group
        In order of precedence.
    feasibility : Feasibility
        What is free. It is used up.

    Returns
    -------
    list of (Group, splitters)
        Who is served, in that order.

    Notes
    -----
    O(racks / 64) for each group that lacks a port, and a choice of splitters for each other.

    Examples
    --------
    >>> from algorithms.b_matching.feasibility import Feasibility
    >>> from algorithms.b_matching.group import Group, shared_ports
    >>> groups = [
    ...     Group("wide", shared_ports(0, [1, 2, 3]), 4, 3, 900.0),
    ...     Group("pair", shared_ports(3, [4]), 2, 1, 100.0),
    ... ]
    >>> free = Feasibility([1, 1, 1, 1, 1], {4: 1})
    >>> [group.name for group, splitters in select_in_order(reversed(groups), free)]
    ['pair']
    """
    selected: Selection = []
    for group in groups:
        # This is `fit`, with no call for the many groups that lack a port.
        if not feasibility.full & group.ports and (pieces := feasibility.splitters(group.leaves)) is not None:
            feasibility.take(group, pieces)
            selected.append((group, pieces))
    return selected
