"""Max-min fair rates of flows that are all there at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from blast_sim.fair import filling_numpy
from blast_sim.fair.compiling import SOLVER, Solver
from blast_sim.fair.paths import Numbers, Paths

Filling = Callable[[Numbers, Paths, Numbers, Numbers, Numbers], Numbers]
"""Room of the links, paths, weights, multiplicity, caps -> levels (rate / weight)."""


@dataclass(frozen=True, slots=True)
class Demands:
    """What flows ask of their paths: shares in proportion to weights, up to caps, for so many flows each."""

    weights: Numbers
    multiplicity: Numbers
    caps: Numbers

    @classmethod
    def of(
        cls,
        flows: int,
        multiplicity: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        rate_caps: ArrayLike | None = None,
    ) -> Demands:
        """Demands of so many flows; a number stands for all of them. Raises ValueError."""
        demands = cls(_each(weights, 1.0, flows), _each(multiplicity, 1.0, flows), _each(rate_caps, np.inf, flows))
        for name, values in (("weights", demands.weights), ("multiplicity", demands.multiplicity)):
            if not ((values > 0) & (values < np.inf)).all():
                raise ValueError(f"{name} must be finite and above 0")
        if not (demands.caps >= 0).all():
            raise ValueError("rate_caps must be at least 0")
        return demands


def fair_rates(  # noqa: PLR0913
    capacities: ArrayLike,
    paths: Paths,
    *,
    multiplicity: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    rate_caps: ArrayLike | None = None,
    solver: Solver = SOLVER,
) -> Numbers:
    """The weighted max-min fair rate of every flow, in the unit of the capacities.

    Each entry of `paths` stands for `multiplicity` equal flows (default 1), and the rate is that of one of them. Where
    flows compete they share in proportion to their `weights` (default 1); none gets more than its cap (default: no
    limit). A flow without links gets its cap. The two solvers differ by rounding only. Raises ValueError.
    """
    room = checked_capacities(capacities)
    check_links(paths, len(room))
    demands = Demands.of(len(paths), multiplicity, weights, rate_caps)
    return demands.weights * filling(solver)(room, paths, demands.weights, demands.multiplicity, demands.caps)


def checked_capacities(capacities: ArrayLike) -> Numbers:
    """Capacities as an array of their own. Raises ValueError."""
    room = np.array(capacities, np.float64)
    if room.ndim != 1 or not (room >= 0).all():
        raise ValueError("capacities must be one number of at least 0 for each link")
    return room


def check_links(paths: Paths, links: int) -> None:
    """Raise ValueError for a path over a link that does not exist."""
    if len(paths.links) and not 0 <= paths.links.min() <= paths.links.max() < links:
        raise ValueError(f"paths name links from {paths.links.min()} to {paths.links.max()}, but there are {links}")


def filling(solver: Solver) -> Filling:
    """The progressive filling of this solver."""
    if solver == "numpy":
        return filling_numpy.fill
    from blast_sim.fair import filling_numba

    return filling_numba.fill


def _each(value: ArrayLike | None, default: float, flows: int) -> Numbers:
    if value is None:
        return np.full(flows, default)
    return np.array(np.broadcast_to(np.asarray(value, np.float64), (flows,)))
