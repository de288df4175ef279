"""Translation between traces and the lab: multicasts of a trace as requests, and their results as those of a replay.

The first host of a rack represents the rack.
"""

from __future__ import annotations

from collections.abc import Sequence

from blast_sim.replay.result import MulticastOutcome, ReplayOutcome
from blast_sim.traces.workload import TraceMulticast, Workload
from blast_transport.datagrams.pacing import SHARE
from blast_transport.wire.datagram import segment_size_for, wire_bytes
from mininet_topos.demo.mix import MixRequest, ServedRequest
from mininet_topos.topology.plan import LabPlan


def requests_of(workload: Workload, plan: LabPlan, may_pause: bool, may_split: bool) -> list[MixRequest]:
    """Return the multicasts as requests, in order.

    They are named by place, because a trace's names may not be file names.
    """
    hosts = [rack.hosts[0].name for rack in plan.rack_plans]

    def request(place: int, one: TraceMulticast) -> MixRequest:
        receivers = tuple(hosts[rack] for rack in one.receivers)
        return MixRequest(f"replay-{place}", one.arrival, hosts[one.sender], receivers, one.bytes, may_pause, may_split)

    return [request(place, one) for place, one in enumerate(workload.multicasts)]


def outcome_of(workload: Workload, served: Sequence[ServedRequest]) -> ReplayOutcome:
    """Return the results of the requests, in their order."""
    pairs = zip(workload.multicasts, served, strict=True)
    return ReplayOutcome(
        [MulticastOutcome(one, result.seconds, result.compute_seconds, bool(result.parts)) for one, result in pairs], {}
    )


def failure_of(served: ServedRequest) -> str:
    """Return the reason why a request is incomplete, from its parts and their receivers."""
    reasons = [part.reason for part in served.parts if not part.complete and part.reason]
    results = [part.result for part in served.parts if part.result is not None]
    reasons += [f"{one.name}: {one.reason}" for result in results for one in result.receivers if not one.complete]
    if not reasons and not served.intact:
        return "a copy differs"
    return ", ".join(reasons) or "some receivers were never granted an optical path"


def payload_gbps(plan: LabPlan) -> float:
    """Return the payload rate in Gbit/s: senders stay below the optical rate, and datagrams have headers."""
    segment = segment_size_for(plan.mtu)
    return plan.light_rate_mbps / 1000 * SHARE * segment / wire_bytes(segment)
