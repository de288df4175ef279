"""Between traces and the lab: a trace's multicasts as requests there, and what became of these as results of a replay.

The first host of a rack stands for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from blast_sim.replay.result import Outcome, Played
from blast_sim.traces.workload import Multicast, Workload
from blast_transport.transports.optical.pacing import SHARE
from blast_transport.wire.datagram import segment_size_for, wire_bytes
from mininet_topos.demo.mix import Asked, Served
from mininet_topos.plan import LabPlan


def requests_of(workload: Workload, plan: LabPlan, may_pause: bool, may_split: bool) -> list[Asked]:
    """The multicasts in order. Names of a trace may be no names of files, so requests are called by their places."""
    hosts = [rack.hosts[0].name for rack in plan.rack_plans]

    def request(place: int, one: Multicast) -> Asked:
        receivers = tuple(hosts[rack] for rack in one.receivers)
        return Asked(f"replay-{place}", one.arrival, hosts[one.sender], receivers, one.bytes, may_pause, may_split)

    return [request(place, one) for place, one in enumerate(workload.multicasts)]


def outcome_of(workload: Workload, served: Sequence[Served]) -> Outcome:
    """What became of the requests, in their order."""
    pairs = zip(workload.multicasts, served, strict=True)
    return Outcome([Played(one, came.seconds, came.compute_seconds, bool(came.parts)) for one, came in pairs], {})


def failure_of(served: Served) -> str:
    """Why a request is not complete: what its parts and their receivers say."""
    reasons = [part.reason for part in served.parts if not part.complete and part.reason]
    results = [part.result for part in served.parts if part.result is not None]
    reasons += [f"{one.name}: {one.reason}" for result in results for one in result.receivers if not one.complete]
    if not reasons and not served.intact:
        return "a copy differs"
    return ", ".join(reasons) or "some receivers never had light"


def payload_gbps(plan: LabPlan) -> float:
    """What of the rate of light carries data: senders keep below it, and datagrams have headers."""
    segment = segment_size_for(plan.mtu)
    return plan.light_rate_mbps / 1000 * SHARE * segment / wire_bytes(segment)
