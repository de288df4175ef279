"""Weighted max-min fair shares of links: rates of flows of a fluid network, for fixed or changing sets of flows.

Start with `solvers.py`, the interface, and `rates.py`; `slack.py` explains which flows a change concerns.
"""

from blast_sim.base.fair_solver import SOLVER, Solver
from blast_sim.fair.demands import Demands
from blast_sim.fair.fluid import finish_times
from blast_sim.fair.paths import Paths
from blast_sim.fair.rates import fair_rates
from blast_sim.fair.shares import FairShares

__all__ = ["SOLVER", "Demands", "FairShares", "Paths", "Solver", "fair_rates", "finish_times"]
