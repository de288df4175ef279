"""Scheduling policies: which part is granted optical resources, when, for how long, and with which receivers.

Start with `policy.py` (what a policy decides) and `scheduler.py` (which events change its queues). Imports
`algorithms.b_matching`.
"""

from __future__ import annotations

from algorithms.scheduling.edf import EarliestDeadline
from algorithms.scheduling.fair_share import FairShare
from algorithms.scheduling.hrrn import ResponseRatio
from algorithms.scheduling.las_lease import AttainedService
from algorithms.scheduling.paper import Paper
from algorithms.scheduling.policy import Policy
from algorithms.scheduling.smith import Smith
from algorithms.scheduling.srpt_lease import ShortestRemaining

POLICIES: dict[str, Policy] = {
    "paper": Paper(),
    "smith": Smith(),
    "hrrn": ResponseRatio(),
    "srpt-lease": ShortestRemaining(),
    "las-lease": AttainedService(),
    "edf": EarliestDeadline(),
    "fair-share": FairShare(),
}
"""The policies by name. A program may add its own; `blast_sim.plugins` adds the ones that a command names."""

DEFAULT = "srpt-lease"
"""The rule that measured best (benchmarks/control_plane/completion_time.py) and starves no request."""
