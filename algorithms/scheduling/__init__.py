"""Policies over time: which part gets light when, for how long, and with which receivers."""

from __future__ import annotations

from algorithms.scheduling.edf import EarliestDeadline
from algorithms.scheduling.fair_share import FairShare
from algorithms.scheduling.hrrn import HighestResponseRatio
from algorithms.scheduling.las_lease import LeastAttained
from algorithms.scheduling.paper import Paper
from algorithms.scheduling.policy import Policy
from algorithms.scheduling.smith import Smith
from algorithms.scheduling.srpt_lease import ShortestRemaining

POLICIES: dict[str, Policy] = {
    "paper": Paper(),
    "smith": Smith(),
    "hrrn": HighestResponseRatio(),
    "srpt-lease": ShortestRemaining(),
    "las-lease": LeastAttained(),
    "edf": EarliestDeadline(),
    "fair-share": FairShare(),
}
"""The policies by their names. A program may add its own; `blast_sim.plugins` adds those that a command names."""

DEFAULT = "srpt-lease"
"""The rule that measured best (benchmarks/completion_time.py) and starves no one."""
