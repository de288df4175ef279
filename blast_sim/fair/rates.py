"""Max-min fair rates of flows that are all there at once."""

from __future__ import annotations

from numpy.typing import ArrayLike

from blast_sim.base.fair_solver import SOLVER, Solver
from blast_sim.fair.demands import Demands, check_links, checked_capacities
from blast_sim.fair.paths import Numbers, Paths
from blast_sim.fair.solvers import filling


def fair_rates(  # noqa: PLR0913
    capacities: ArrayLike,
    paths: Paths,
    *,
    multiplicity: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    rate_caps: ArrayLike | None = None,
    solver: Solver = SOLVER,
) -> Numbers:
    """Return the weighted max-min fair rate of every flow, in the unit of the capacities.

    Each entry of `paths` stands for `multiplicity` equal flows (default 1), and the rate is that of one of them. Where
    flows compete they share in proportion to their `weights` (default 1); none gets more than its cap (default: no
    limit). A flow without links gets its cap. The two solvers differ by rounding only. Raises ValueError.
    """
    room = checked_capacities(capacities)
    check_links(paths, len(room))
    demands = Demands.of(len(paths), multiplicity, weights, rate_caps)
    return demands.weights * filling(solver)(room, paths, demands)
