"""The lab in which a Spark cluster runs."""

from __future__ import annotations

from mininet_topos.topology.plan import LabPlan


def spark_plan(racks: int, rate_mbps: float) -> LabPlan:
    """Return racks of one host, equal rates everywhere, and a splitter for all racks. Raises `PlanError`."""
    fan_out = 1 << (racks - 2).bit_length()
    splitters = {fan_out: 1} if fan_out > 1 else {}
    return LabPlan(
        racks=racks, hosts_per_rack=1, splitters=splitters, light_rate_mbps=rate_mbps, access_rate_mbps=rate_mbps
    )
