"""Weighted max-min fair shares of links: what flows of a fluid network get, at once or as flows come and go."""

from blast_sim.fair.compiling import SOLVER, Solver
from blast_sim.fair.paths import Paths
from blast_sim.fair.rates import fair_rates
from blast_sim.fair.shares import FairShares

__all__ = ["SOLVER", "FairShares", "Paths", "Solver", "fair_rates"]
