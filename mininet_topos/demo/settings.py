"""The lab of the demo."""

from __future__ import annotations

from mininet_topos.topology.plan import LabPlan, preset

MIN_FILE = 8_000_000
"""Bytes: two thirds of a second at the optical rate. Start and end effects hide the rate of a shorter transfer."""


def demo_plan(racks: int) -> LabPlan:
    """Return the lab: racks of two hosts, two 1:4 splitters. Raises `PlanError`."""
    return preset("small", racks=racks)
