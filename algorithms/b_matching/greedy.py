"""The paper's greedy algorithm for maximum weighted hypergraph b-matching (Blast, section III-C.2)."""

from __future__ import annotations

from collections.abc import Iterable

from algorithms.b_matching.feasibility import Feasibility, Pieces
from algorithms.b_matching.group import CompetingGroup

Selection = list[tuple[CompetingGroup, Pieces]]
"""The groups to serve, in the order of selection, each with the splitters of its tree."""


def score(group: CompetingGroup) -> float:
    """Return the traffic volume per optical port: volume divided by the number of racks (Blast, section III-C.2).

    Parameters
    ----------
    group : Group
        Its weight is the volume, data times receivers, in any unit.

    Returns
    -------
    float
        Volume per rack, in the same unit.

    Examples
    --------
    >>> from algorithms.b_matching.group import CompetingGroup
    >>> score(CompetingGroup("a", ports=0b1111, racks=4, leaves=3, weight=900.0))
    225.0
    """
    return group.weight / group.racks


def select(groups: Iterable[CompetingGroup], feasibility: Feasibility) -> Selection:
    """Select the groups to serve now, best score first; equal scores keep their order.

    One pass suffices: resources only shrink, so a group that does not fit never fits later in the pass.

    Parameters
    ----------
    groups : iterable of Group
        The competing groups.
    feasibility : Feasibility
        Free resources. Consumed by the selected groups.

    Returns
    -------
    list of (Group, splitters)
        The selected groups in the order of selection, with the fan-outs of their splitters.

    Notes
    -----
    O(n log n + n * racks / 64) for n groups. At least 1 / r of the optimum if no group joins more than r racks, every
    rack has one port and splitters do not bind (Blast, section III-C.2).

    Examples
    --------
    >>> from algorithms.b_matching.feasibility import Feasibility
    >>> from algorithms.b_matching.group import CompetingGroup, shared_ports
    >>> groups = [
    ...     CompetingGroup("wide", shared_ports(0, [1, 2, 3]), 4, 3, 900.0),
    ...     CompetingGroup("pair", shared_ports(3, [4]), 2, 1, 100.0),
    ... ]
    >>> free = Feasibility([1, 1, 1, 1, 1], {4: 1})
    >>> [(group.name, splitters) for group, splitters in select(groups, free)]
    [('wide', (4,))]
    """
    return select_in_order(sorted(groups, key=score, reverse=True), feasibility)


def select_in_order(groups: Iterable[CompetingGroup], feasibility: Feasibility) -> Selection:
    """Select every group that fits, in the order given.

    Parameters
    ----------
    groups : iterable of Group
        In order of precedence.
    feasibility : Feasibility
        Free resources. Consumed by the selected groups.

    Returns
    -------
    list of (Group, splitters)
        The selected groups in that order, with the fan-outs of their splitters.

    Notes
    -----
    O(racks / 64) for each group that lacks a port, plus a choice of splitters for each other group.

    Examples
    --------
    >>> from algorithms.b_matching.feasibility import Feasibility
    >>> from algorithms.b_matching.group import CompetingGroup, shared_ports
    >>> groups = [
    ...     CompetingGroup("wide", shared_ports(0, [1, 2, 3]), 4, 3, 900.0),
    ...     CompetingGroup("pair", shared_ports(3, [4]), 2, 1, 100.0),
    ... ]
    >>> free = Feasibility([1, 1, 1, 1, 1], {4: 1})
    >>> [group.name for group, splitters in select_in_order(reversed(groups), free)]
    ['pair']
    """
    selected: Selection = []
    for group in groups:
        # `fit` inlined: most groups lack a port, and the call would dominate.
        if not feasibility.full & group.ports and (pieces := feasibility.splitters(group.leaves)) is not None:
            feasibility.take(group, pieces)
            selected.append((group, pieces))
    return selected
