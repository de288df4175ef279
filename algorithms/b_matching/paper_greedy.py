"""The paper's greedy for maximum weighted hyper-graph b-matching (Blast, section III-C.2)."""

from __future__ import annotations

from collections.abc import Iterable

from algorithms.b_matching.residual import Choice, Group, Residual


def score(group: Group) -> float:
    """Traffic volume per optical port: volume divided by the number of racks."""
    return group.volume / len(group.racks)


def select(groups: Iterable[Group], residual: Residual) -> list[tuple[Group, Choice]]:
    """The groups to serve now, best score first; equal scores keep their order. `residual` is used up.

    One pass is enough: resources only shrink, so a group that does not fit never fits later in the pass.
    """
    selected = []
    for group in sorted(groups, key=score, reverse=True):
        choice = residual.fit(group)
        if choice is not None:
            residual.take(group, choice)
            selected.append((group, choice))
    return selected
