"""Branch and bound on the relaxation: finds and proves the optimum if few options are fractional.

The search is depth first. It branches on the heaviest fraction and takes the option before it excludes it, so that the
first leaf is a dive to a good selection. Each node's fractions are rounded to a selection. A node costs a few dual
simplex pivots, because one solver visits all nodes and only the fixed options change.
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
    """The options that a node fixes, and the bound of its parent."""

    fixed: frozenset[Fixed]
    bound: float


def branched(
    options: Options, relaxation: Relaxation, relaxed: Relaxed, start: Sequence[int], go_on: Callable[[], bool]
) -> tuple[list[int], float]:
    """Return a selection no lighter than `start` and a bound on all selections: its own weight if the search completed.

    Searches while `go_on()` is true. `relaxed` is the last solution of `relaxation`; options fixed there stay fixed.
    """
    best, value = list(start), options.total(start)
    open_nodes = _children(options, _Node(frozenset(), relaxed.bound), relaxed)
    fixed = frozenset[Fixed]()
    # The bound of nodes that are neither searched nor dominated: the solver was stopped, or no fraction is left to
    # branch on.
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
    """Return the node's two children, the one to search first last; none if no option is fractional."""
    undecided = fractional(relaxed)
    if not undecided:
        return []
    option = max(undecided, key=lambda j: relaxed.fractions[j] * options.weights[j])
    return [_Node(node.fixed | {(option, value)}, relaxed.bound) for value in (0, 1)]


def _move(relaxation: Relaxation, old: frozenset[Fixed], new: frozenset[Fixed]) -> None:
    """Change the fixed options from those of one node to those of another."""
    for option, _ in sorted(old - new):
        relaxation.free(option)
    for option, value in sorted(new - old):
        relaxation.fix(option, value)
