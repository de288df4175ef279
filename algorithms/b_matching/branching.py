"""Branch and bound on the relaxation: finds and proves the optimum where few options are left in fractions.

Depth first, the heaviest fraction first, and taken before it is left out, so that the first leaf is a dive to a good
selection. Every node's fractions are rounded to a selection. A node costs a few dual simplex pivots, because one
solver goes from node to node and only what is fixed changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from algorithms.b_matching.options import Options
from algorithms.b_matching.relaxation import Relaxation, Relaxed
from algorithms.b_matching.rounding import fractional, rounded

Fixed = tuple[int, int]
"""An option, taken (1) or left out (0)."""


@dataclass(frozen=True, slots=True)
class _Node:
    """What is fixed in it, and the bound of the node above."""

    fixed: frozenset[Fixed]
    bound: float


def branched(
    options: Options, relaxation: Relaxation, relaxed: Relaxed, start: Sequence[int], go_on: Callable[[], bool]
) -> tuple[list[int], float]:
    """A selection no lighter than `start` and a bound on all, its own weight if the search came to its end.

    Goes on while `go_on()`. `relaxed` is what `relaxation` was just solved to; options fixed there stay so.
    """
    best, value = list(start), options.total(start)
    open_nodes = _children(options, _Node(frozenset(), relaxed.bound), relaxed)
    fixed = frozenset[Fixed]()
    # The bound of nodes that are neither searched nor beaten: the solver was stopped, or leaves nothing to branch on.
    unsettled = 0.0 if open_nodes else relaxed.bound
    while open_nodes and go_on():
        node = open_nodes.pop()
        if node.bound <= value:
            continue
        _move(relaxation, fixed, node.fixed)
        fixed = node.fixed
        inside = relaxation.solve()
        if inside is None:
            unsettled = max(unsettled, node.bound if relaxation.feasible else 0.0)
            continue
        bound = min(node.bound, inside.bound)
        if bound <= value:
            continue
        found = rounded(options, inside)
        weight = options.total(found)
        if weight > value:
            best, value = found, weight
        children = _children(options, node, inside) if inside.optimal else []
        open_nodes += children
        if not children:
            unsettled = max(unsettled, bound)
    return best, max([value, unsettled, *(node.bound for node in open_nodes)])


def _children(options: Options, node: _Node, relaxed: Relaxed) -> list[_Node]:
    """The node's two halves, the one to look at first last; none if nothing is left in fractions."""
    undecided = fractional(relaxed)
    if not undecided:
        return []
    option = max(undecided, key=lambda j: relaxed.fractions[j] * options.weights[j])
    return [_Node(node.fixed | {(option, value)}, relaxed.bound) for value in (0, 1)]


def _move(relaxation: Relaxation, old: frozenset[Fixed], new: frozenset[Fixed]) -> None:
    """Change what is fixed from one node's to another's."""
    for option, _ in sorted(old - new):
        relaxation.free(option)
    for option, value in sorted(new - old):
        relaxation.fix(option, value)
