"""Scenes (b) and (c): an iterative job over the optical network, and the same file over the packet network."""

from __future__ import annotations

from pathlib import Path

from mininet_topos.demo.receivers import Receivers
from mininet_topos.demo.results import MeasuredTransfer, Quantity
from mininet_topos.demo.stage import Stage
from mininet_topos.demo.transfers import RepeatedTransfer, check_intact, check_optical

MAX_RECEIVERS = 7
"""Two cascaded 1:4 splitters reach seven racks."""

TCP_HEADERS, ETHERNET_HEADER = 52, 14
"""IPv4 and TCP with timestamps; bytes that the shaper counts per frame besides its IP packet."""


def play(stage: Stage, receivers: Receivers, path: Path, iterations: int) -> None:
    """Run optical iterations, one unicast and one pipeline transfer.

    They go from the first host to those of seven other racks.
    """
    sender, *others = stage.first_hosts()[: MAX_RECEIVERS + 1]
    with RepeatedTransfer(stage, receivers, sender, others, path) as job:
        light = _by_optical(stage, job, iterations)
        unicast = _by_unicast(stage, job)
        pipeline = _by_pipeline(stage, job)
    seconds = sum(t.seconds for t in light) / len(light)
    stage.explain(
        f"optical multicast is {unicast.seconds / seconds:.1f} times as fast as unicast to {len(others)} receivers, "
        f"and {pipeline.seconds / seconds:.1f} times as fast as the pipeline"
    )


def _by_optical(stage: Stage, job: RepeatedTransfer, iterations: int) -> list[MeasuredTransfer]:
    size = job.size / 1e6
    stage.open_scene("b", f"An iterative job: {iterations} x {size:.1f} MB from {job.host} to {len(job.hosts)} racks")
    transfers = []
    for index in range(1, iterations + 1):
        transfer, grant = job.by_optical(f"optical-{index}")
        transfers.append(transfer)
        granted_after = grant.timings.totalMs if grant.timings else None
        stage.explain(
            f"iteration {index:2}: granted after {granted_after or 0.0:6.2f} ms, {transfer.seconds:.3f} s, "
            f"{transfer.payload_mbps:.1f} Mbit/s at each receiver, uplink {transfer.uplink_copies:.3f} copies"
        )
    check_optical(stage, transfers)
    return transfers


def _by_unicast(stage: Stage, job: RepeatedTransfer) -> MeasuredTransfer:
    stage.open_scene("c", "The same file over the packet network: unicast to each receiver, then a pipeline")
    minimum = _min_seconds(stage, job)
    transfer = job.by_unicast("unicast")
    stage.explain(
        f"unicast: {transfer.seconds:.3f} s, {transfer.payload_mbps:.1f} Mbit/s at each receiver, "
        f"{transfer.core_share:.2f} copies through the packet core"
    )
    check_intact(stage, "every file arrived intact", [transfer], f"{transfer.receivers} receivers")
    stage.measured("unicast", Quantity(transfer.seconds, "s", {"minimum by access link": minimum}))
    return transfer


def _by_pipeline(stage: Stage, job: RepeatedTransfer) -> MeasuredTransfer:
    transfer = job.by_pipeline("pipeline")
    stage.explain(
        f"pipeline: {transfer.seconds:.3f} s, {transfer.payload_mbps:.1f} Mbit/s at each receiver, "
        f"{transfer.core_share:.2f} copies through the packet core"
    )
    check_intact(stage, "every file arrived intact by pipeline", [transfer], f"{transfer.receivers} receivers")
    return transfer


def _min_seconds(stage: Stage, job: RepeatedTransfer) -> float:
    """Return the minimum seconds: all copies leave by the sender's access link at its rate less headers."""
    plan = stage.lab.plan
    efficiency = (plan.mtu - TCP_HEADERS) / (plan.mtu + ETHERNET_HEADER)
    return job.size * 8 * len(job.hosts) / (plan.access_rate_mbps * 1e6 * efficiency)
