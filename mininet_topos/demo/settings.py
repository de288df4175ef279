"""What the demo is played on."""

from __future__ import annotations

from mininet_topos.plan import LabPlan, preset

MIN_FILE = 8_000_000
"""Bytes: two thirds of a second of light. The first and the last milliseconds of a shorter transfer hide its rate."""


def demo_plan(racks: int) -> LabPlan:
    """The lab: racks of two hosts, two splitters 1:4. Raises `PlanError`."""
    return preset("small", racks=racks)
