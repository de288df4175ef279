"""Selection of the contenders to serve first, so that the total value exceeds that of the order of rank."""

from __future__ import annotations

import math
import random
from collections.abc import Hashable, Iterable
from dataclasses import replace

from algorithms.b_matching.budget import Spent
from algorithms.b_matching.feasibility import Pieces
from algorithms.b_matching.optimizer import optimize
from algorithms.scheduling.contention import Chosen, Contender, Contention

Served = Iterable[tuple[Contender, Pieces]]


def choose(contention: Contention, spent: Spent, rng: random.Random) -> tuple[Chosen, ...]:
    """Return the contenders to serve first; empty if no better order than rank is found while `spent()` is below 1.

    Parameters
    ----------
    contention : Contention
        Parts that could start, and the free resources of each switch.
    spent : callable
        Returns the share of the effort that is used up: time, or `budget.Steps`. The switches are filled one after the
        other, each with an equal share.
    rng : random.Random
        Random numbers for the search.

    Returns
    -------
    tuple of Chosen
        A preference: the scheduler still checks that resources are free.

    Notes
    -----
    Complexity and quality are those of `b_matching.optimizer.optimize`, for each switch.

    Examples
    --------
    >>> from algorithms.b_matching.budget import StepBudget
    >>> from algorithms.b_matching.feasibility import Feasibility
    >>> from algorithms.b_matching.group import CompetingGroup
    >>> from algorithms.scheduling.contention import Contender
    >>> def pair(name: str, ports: int, weight: float) -> Contender:
    ...     return Contender((name, 0), "ocs1", CompetingGroup((name, 0), ports, 2, 1, weight))
    >>> ranked = (pair("middle", 0b0110, 3.0), pair("left", 0b0011, 2.0), pair("right", 0b1100, 2.0))
    >>> contention = Contention(ranked, {"ocs1": Feasibility([1, 1, 1, 1], {})}, {})
    >>> [chosen.name[0] for chosen in choose(contention, StepBudget(1000), random.Random(0))]
    ['left', 'right']
    """
    in_order = [(contender, None) for contender in contention.contenders]
    better = contention.served([*_optimized(contention, spent, rng), *in_order])
    if worth(better) <= worth(contention.served(in_order)):
        return ()
    return tuple(Chosen(contender.name, contender.switch, pieces) for contender, pieces in better)


def worth(served: Served) -> float:
    """Return the total value of the served contenders by the policy's objective."""
    # Rounded once only, so that the sum does not depend on the order.
    return math.fsum(contender.group.weight for contender, _ in served)


def _optimized(contention: Contention, spent: Spent, rng: random.Random) -> list[tuple[Contender, Pieces]]:
    found: list[tuple[Contender, Pieces]] = []
    for number, (name, free) in enumerate(contention.free.items()):
        done = {contender.name for contender, _ in found}
        here: dict[Hashable, Contender] = {
            c.name: c for c in contention.contenders if c.switch == name and c.name not in done
        }
        groups = [replace(c.group, name=c.name) for c in here.values()]
        best = optimize(groups, free, _share(spent, number, len(contention.free)), rng)
        found += [(here[group.name], pieces) for group, pieces in best.selection]
    return found


def _share(spent: Spent, number: int, of: int) -> Spent:
    return lambda: spent() * of - number
