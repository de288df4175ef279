"""Static trees in a lab: splitters fixed between ToRs and hosts carry groups while the optical switch does nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from blast_api.ttypes import Grant
from blast_client import Client
from blast_transport.base.report import TransferResult
from blast_transport.session.sender import Sender
from mininet_topos.demo.receivers import Receivers
from mininet_topos.demo.results import Results
from mininet_topos.demo.stage import Stage
from mininet_topos.kernel.namespace import run_in_network_of
from mininet_topos.kernel.netdev import query
from mininet_topos.topology.counters import Traffic, interface_traffic
from mininet_topos.topology.plan import preset
from tests.support.controller.fabric_truth import held_circuits
from tests.support.waiting import eventually

pytestmark = pytest.mark.lab

PLAN = preset("static")
SIZE = 2_000_000
_, BY_HOST = PLAN.static_tree_plans
"""The first leads from the ToR of r1 to those of r2 and r3 and the host r4h1, the second from the host r2h2."""


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    # Mininet is not everywhere where tests are collected.
    from mininet_topos.lab.lab import Lab

    with Lab(PLAN) as lab, Client(lab.thrift) as client:
        stage = Stage(lab, client, Results(PLAN.summary))
        stage.wait_devices()
        yield stage


@pytest.fixture(scope="module")
def data(stage: Stage) -> Path:
    path = stage.lab.directory / "data"
    path.write_bytes(os.urandom(SIZE))
    return path


def sent(stage: Stage, data: Path, sender: str, to: Sequence[str], optical_address: str) -> TransferResult:
    """Send `data` over a grant that takes no cross-connect, and verify it at every receiver."""
    with Receivers(stage, to) as receivers:
        settings = replace(receivers.settings_of(sender), interface_address=optical_address)

        def send(grant: Grant) -> TransferResult:
            with Sender(receivers.addresses(to), settings) as transfer:
                return transfer.send(data, grant.groupAddress, grant.groupPort, grant.rateBitsPerSecond)

        with stage.granted(stage.new_request(sender, to, SIZE)) as grant:
            (tree,) = stage.client.fabric().lightTrees
            assert (tree.state, tree.splitters, tree.crossConnects) == ("lit", [], [])
            result: TransferResult = run_in_network_of(stage.lab.pid(sender), lambda: send(grant))
        assert receivers.hashes_equal(data, to)
    return result


def through_the_switch(stage: Stage) -> list[Traffic]:
    return [stage.lab.counters.optical(rack.number) for rack in PLAN.rack_plans]


def carried(stage: Stage) -> list[int]:
    """Return the bytes since the start into the first tree, and out of it at both ToRs and at the host."""
    names = stage.lab.names
    leaves = [interface_traffic(names.static_at_tor(rack, 1)).received_bytes for rack in (2, 3)]
    card = ["ip", "-json", "-stats", "link", "show", "dev", names.static_at_host(4, 1)]
    (shown,) = json.loads(query(card, namespace_pid=stage.lab.pid("r4h1")))
    return [interface_traffic(names.static_at_tor(1, 1)).sent_bytes, *leaves, shown["stats64"]["rx"]["bytes"]]


def test_static_tree_of_tor_reaches_racks_and_host(stage: Stage, data: Path) -> None:
    core, switch = stage.lab.counters.core(), through_the_switch(stage)
    to = ("r2h1", "r2h2", "r3h1", "r4h1")
    result = sent(stage, data, "r1h2", to, "10.0.1.2")
    assert (result.complete, result.transports) == (len(to), ("optical",))
    assert held_circuits(stage.lab) == set()
    assert through_the_switch(stage) == switch, "no fiber of the optical switch has carried anything"
    eventually(lambda: len(set(carried(stage))) == 1, "all that went into the glass to leave it by every output")
    assert SIZE < carried(stage)[0] < 1.2 * SIZE, "one copy"
    assert (stage.lab.counters.core() - core).sent_bytes < 0.2 * SIZE, "and next to nothing beside it"


def test_static_tree_of_host_works_without_optical_switch(stage: Stage, data: Path) -> None:
    stage.wait_dark()
    stage.lab.optical_switch.stop_agent()
    to = ("r1h1", "r3h2", "r4h2")
    try:
        eventually(lambda: not stage.client.fabric().opticalSwitches[0].connected, "the controller to miss the switch")
        result = sent(stage, data, BY_HOST.root.name, to, BY_HOST.root.light_ip)
    finally:
        stage.lab.optical_switch.start_agent()
    stage.wait_devices()
    assert (result.complete, result.transports) == (len(to), ("optical",))
    assert result.repaired_bytes < SIZE // 20, "but for what a busy machine drops"
