"""The lab in which a Spark cluster runs."""

from __future__ import annotations

from mininet_topos.plan import LabPlan


def spark_plan(racks: int, rate_mbps: float) -> LabPlan:
    """Racks of one host, all links and the light of one rate, and a splitter that reaches all. Raises `PlanError`."""
    ways = 1 << (racks - 2).bit_length()
    splitters = {ways: 1} if ways > 1 else {}
    return LabPlan(
        racks=racks, hosts_per_rack=1, splitters=splitters, light_rate_mbps=rate_mbps, access_rate_mbps=rate_mbps
    )
