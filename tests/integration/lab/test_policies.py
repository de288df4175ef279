"""Transfers in the lab that are paused, continued and served in parts, byte-identical at every receiver."""

from __future__ import annotations

import pytest

from blast_client import Client
from blast_transport.wire.datagram import segment_size_for, wire_bytes
from mininet_topos.demo.latency import KEEP_WARM_MS
from mininet_topos.demo.mix import MixOutcome, MixRequest, serve
from mininet_topos.demo.results import Results
from mininet_topos.demo.stage import Stage
from mininet_topos.topology.plan import LabPlan

pytestmark = pytest.mark.lab

PLAN = LabPlan(racks=6, hosts_per_rack=1, splitters={4: 2}, light_rate_mbps=40.0)
SECOND = 5_000_000
"""Bytes that light carries in a second."""

LONG = MixRequest("long", 0.0, "r1h1", ("r2h1", "r3h1"), 3 * SECOND, may_pause=True, may_split=False)
SHORT = MixRequest("short", 0.3, "r4h1", ("r2h1", "r5h1"), SECOND // 4, may_pause=False, may_split=False)
OTHER = MixRequest("other", 5.0, "r6h1", ("r5h1",), 2 * SECOND, may_pause=False, may_split=False)
WIDE = MixRequest("wide", 5.3, "r1h1", ("r2h1", "r3h1", "r4h1", "r5h1"), SECOND // 2, may_pause=True, may_split=True)
MIX = (LONG, SHORT, OTHER, WIDE)
"""The second request arrives while the first still needs more than a second of optical transfer."""


def played(policy: str | None) -> MixOutcome:
    """Run the mix under a policy; rack 1 must send each byte optically once, and again only as a shared repair."""
    # Mininet is not everywhere where tests are collected.
    from mininet_topos.lab.lab import Lab

    with Lab(PLAN, policy=policy, keep_warm_ms=KEEP_WARM_MS) as lab, Client(lab.thrift) as client:
        stage = Stage(lab, client, Results(PLAN.summary))
        stage.wait_devices()
        before = lab.counters.optical(1)
        outcome = serve(stage, MIX, policy or "default", lambda _: None)
        sent = (lab.counters.optical(1) - before).sent_bytes
    assert all(served.complete for served in outcome.served), outcome
    own = [served for served in outcome.served if served.asked.sender == "r1h1"]
    payload = segment_size_for(PLAN.mtu)
    repeated = payload * sum(part.result.shared_repairs for served in own for part in served.parts if part.result)
    once = sum(len(served.parts) * served.asked.size for served in own)
    assert sent <= 1.02 * wire_bytes(payload) / payload * (once + repeated)
    return outcome


def test_default_policy_pauses_and_splits_without_resending() -> None:
    long, short, other, wide = played(None).served
    assert long.pauses >= 1 and short.pauses == other.pauses == 0
    assert len(wide.parts) == 2 and len(long.parts) == 1
    assert sorted(len(part.receivers) for part in wide.parts) == [1, 3]


def test_paper_policy_never_pauses_or_splits_requests() -> None:
    outcome = played("paper")
    assert (outcome.pauses, outcome.split) == (0, 0)
