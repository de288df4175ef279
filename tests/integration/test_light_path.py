"""The whole chain in a lab: Thrift client, controller, TL1, OpenFlow, light, packets at hosts."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from blast_api.ttypes import Ended, Extension, FabricStatus, Grant, NotYet, PartState
from blast_client import Client
from mininet_topos.demo.capture import Captures
from mininet_topos.demo.results import Results
from mininet_topos.demo.stage import Stage
from mininet_topos.plan import LabPlan, preset

pytest.importorskip("mininet")

from mininet_topos.lab import Lab
from tl1_driver.circuits import Circuit
from tl1_driver.client import SwitchClient
from tl1_driver.dialects import DIALECTS

pytestmark = pytest.mark.lab

PACKETS = 10


@contextmanager
def running(plan: LabPlan) -> Iterator[Stage]:
    with Lab(plan) as lab, Client(lab.thrift) as client:
        stage = Stage(lab, client, Results(plan.summary))
        stage.wait_devices()
        yield stage


@pytest.fixture(scope="module")
def eight_racks() -> Iterator[Stage]:
    """Eight racks of two hosts, two splitters 1:4."""
    with running(preset("small")) as stage:
        yield stage


@pytest.fixture
def stage(eight_racks: Stage) -> Iterator[Stage]:
    """The shared lab, dark before and after each test."""
    eight_racks.wait_dark()
    yield eight_racks
    for request in eight_racks.client.list_requests([PartState.PENDING, PartState.CONFIGURING, PartState.ACTIVE]):
        eight_racks.client.withdraw(request.key)
    eight_racks.wait_dark()


def all_hosts(stage: Stage) -> list[str]:
    return [host.name for rack in stage.lab.plan.rack_plans for host in rack.hosts]


def send_and_see(captures: Captures, sender: str, grant: Grant) -> set[str]:
    captures.send(sender, grant, PACKETS)
    return captures.reached(PACKETS)


def test_packets_reach_exactly_the_members_before_during_and_after(stage: Stage) -> None:
    members = ["r2h1", "r3h2", "r4h1", "r4h2", "r6h1", "r1h2", "r7h2"]
    request = stage.new_request("r1h1", members, 10**7)
    probe = stage.new_request("r1h1", members, 10**7)
    with stage.granted(probe) as old:
        pass
    stage.wait_dark()
    with Captures(stage, all_hosts(stage), old.groupAddress) as captures:
        assert send_and_see(captures, "r1h1", old) == set(), "a group that was released still reaches someone"
    with stage.granted(request) as grant, Captures(stage, all_hosts(stage), grant.groupAddress) as captures:
        assert send_and_see(captures, "r1h1", grant) == set(members)
        assert send_and_see(captures, "r1h2", grant) == set(), "a stranger in the sender's rack, himself a member"
        assert send_and_see(captures, "r2h2", grant) == set(), "a stranger in a member's rack"
        assert send_and_see(captures, "r8h1", grant) == set(), "a stranger elsewhere"
    stage.wait_dark()
    with Captures(stage, all_hosts(stage), grant.groupAddress) as captures:
        assert send_and_see(captures, "r1h1", grant) == set()


def test_a_branch_without_its_cross_connect_is_dark(stage: Stage) -> None:
    members = [f"r{rack}h1" for rack in range(2, 9)]
    with stage.granted(stage.new_request("r1h1", members, 10**7)) as grant:
        (tree,) = stage.client.fabric().lightTrees
        assert len(tree.crossConnects) == 9, "two splitters and seven leaves"
        with Captures(stage, all_hosts(stage), grant.groupAddress) as captures:
            for circuit in tree.crossConnects:
                pair = Circuit(circuit.switchInput, circuit.switchOutput)
                _tl1(stage, "disconnect", pair)
                seen = send_and_see(captures, "r1h1", grant)
                _tl1(stage, "connect", pair)
                assert seen == set(members) - _below(stage.client.fabric(), tree.crossConnects, pair.output)
            assert send_and_see(captures, "r1h1", grant) == set(members)


def _tl1(stage: Stage, what: str, *circuits: Circuit) -> None:
    host, port = stage.lab.tl1.split(":")

    async def go() -> None:
        client = SwitchClient(host, int(port), DIALECTS["glimmerglass"])
        await client.open()
        try:
            await getattr(client, what)(list(circuits))
        finally:
            await client.close()

    asyncio.run(go())


def _below(fabric: FabricStatus, circuits: list, output: int) -> set[str]:
    """The first hosts of the racks that get their light through this switch output (walked by hand)."""
    racks = {port.switchOutput: rack.name for rack in fabric.racks for port in rack.opticalPorts}
    if output in racks:
        return {f"{racks[output]}h1"}
    splitter = next(s for s in fabric.splitters if s.switchOutput == output)
    below = [c.switchOutput for c in circuits if c.switchInput in splitter.switchInputs]
    return set().union(*(_below(fabric, circuits, o) for o in below))


def test_a_branch_without_its_rule_is_dark(stage: Stage) -> None:
    members = ["r2h1", "r3h1", "r4h1"]
    with (
        stage.granted(stage.new_request("r1h1", members, 10**7)) as grant,
        Captures(stage, all_hosts(stage), grant.groupAddress) as captures,
    ):
        for rack in (2, 3, 4, 1):
            bridge = stage.lab.names.bridge(rack)
            match = f"ip,nw_dst={grant.groupAddress}"
            rules = _ofctl("dump-flows", bridge, match)
            assert "set_field" in rules or rack != 1
            _ofctl("del-flows", bridge, match)
            dark = set(members) if rack == 1 else {f"r{rack}h1"}
            members = [m for m in members if m not in dark]
            assert send_and_see(captures, "r1h1", grant) == set(members)


def _ofctl(command: str, bridge: str, match: str) -> str:
    done = subprocess.run(
        ["ovs-ofctl", "-O", "OpenFlow13", command, bridge, match], check=True, capture_output=True, text=True
    )
    return done.stdout


def test_one_rack_needs_no_light_and_two_need_no_splitter(stage: Stage) -> None:
    with stage.granted(stage.new_request("r1h1", ["r1h2"], 10**6)) as grant:
        (tree,) = stage.client.fabric().lightTrees
        assert tree.crossConnects == [] and tree.splitters == []
        with Captures(stage, all_hosts(stage), grant.groupAddress) as captures:
            assert send_and_see(captures, "r1h1", grant) == {"r1h2"}
    stage.wait_dark()
    with stage.granted(stage.new_request("r1h1", ["r5h1", "r5h2"], 10**6)) as grant:
        (tree,) = stage.client.fabric().lightTrees
        assert len(tree.crossConnects) == 1 and tree.splitters == []
        with Captures(stage, all_hosts(stage), grant.groupAddress) as captures:
            assert send_and_see(captures, "r1h1", grant) == {"r5h1", "r5h2"}


def test_an_extension_loses_nothing_for_those_who_stay(stage: Stage) -> None:
    request = stage.new_request("r1h1", ["r2h1", "r3h1"], 10**7)
    with (
        stage.granted(request) as grant,
        Captures(stage, all_hosts(stage), grant.groupAddress) as captures,
        Client(stage.lab.thrift) as other,
    ):
        import threading

        total = 300
        sending = threading.Thread(target=captures.send, args=("r1h1", grant, total))
        sending.start()
        time.sleep(0.1)
        other.extend(request.key, Extension(addReceivers=["r4h1", "r5h1", "r2h2"]))
        sending.join()
        counts = captures.counts()
        assert counts["r2h1"] == counts["r3h1"] == total
        assert set(counts) == {"r2h1", "r3h1", "r4h1", "r5h1", "r2h2"}


def test_arp_and_unknown_unicast_never_leave_by_light(stage: Stage) -> None:
    counters = stage.lab.counters
    racks = [rack.number for rack in stage.lab.plan.rack_plans]
    with stage.granted(stage.new_request("r1h1", ["r2h1", "r3h1"], 10**6)):
        before = {rack: counters.optical(rack).sent_packets for rack in racks}
        host = stage.lab.host("r1h1")
        host.cmd("ip neigh flush all; ping -c1 -W1 10.0.2.2; arping -c1 -w1 10.0.250.1; ping -c1 -W1 -b 10.0.255.255")
        after = {rack: counters.optical(rack).sent_packets for rack in racks}
    assert after == before


def test_a_foreign_cross_connect_in_the_way_fails_the_request_cleanly(stage: Stage) -> None:
    """Somebody connects a rack's port by hand after the controller looked: the switch denies, nothing leaks."""
    (port,) = next(rack for rack in stage.client.fabric().racks if rack.name == "r8").opticalPorts
    foreign = Circuit(port.switchInput, port.switchOutput)
    _tl1(stage, "connect", foreign)
    try:
        with pytest.raises(Ended) as refused:
            stage.client.request(stage.new_request("r1h1", ["r8h1"], 10**6), 10)
        assert refused.value.state == PartState.FAILED
        assert "ocs1" in refused.value.reason
    finally:
        _tl1(stage, "disconnect", foreign)
    stage.wait_dark()
    with stage.granted(stage.new_request("r1h1", ["r8h1"], 10**6)):
        pass


def test_an_optical_switch_that_is_away_makes_requests_wait(stage: Stage) -> None:
    stage.lab.optical_switch.stop_agent()
    stage.wait_for(lambda f: not f.opticalSwitches[0].connected, "the controller to notice")
    request = stage.new_request("r1h1", ["r2h1", "r3h1"], 10**6)
    try:
        with pytest.raises(NotYet) as late:
            stage.client.request(request, 0.2)
        assert "ocs1 is away" in late.value.sentence
        with stage.granted(stage.new_request("r4h1", ["r4h2"], 10**6)):
            pass
    finally:
        stage.lab.optical_switch.start_agent()
    event = stage.client.await_event(request.key, 0, 20)
    assert event.grant is not None
    stage.client.finish(request.key)


def test_a_client_that_vanishes_before_its_grant_is_given_up(stage: Stage) -> None:
    blocker = stage.new_request("r1h1", ["r2h1"], 10**6)
    waiting = stage.new_request("r1h2", ["r2h2"], 10**6)
    with stage.granted(blocker):
        ghost = subprocess.Popen(
            [sys.executable, "-c", GHOST, stage.lab.thrift, waiting.key], stderr=subprocess.DEVNULL
        )
        try:
            stage.wait_for(lambda f: f.pendingRequests == 1, "the ghost's request")
        finally:
            ghost.kill()
            ghost.wait()
        event = stage.client.await_event(waiting.key, 0, 10)
        assert event.state == PartState.WITHDRAWN and "vanished" in event.reason


GHOST = """
import sys
from blast_client import Client, MulticastRequest
Client(sys.argv[1]).request(MulticastRequest(sys.argv[2], "r1h2", ["r2h2"], 10**6), 60)
"""


def test_several_racks_on_one_datapath() -> None:
    with running(preset("paper-testbed")) as stage:
        hosts = stage.first_hosts()
        with (
            stage.granted(stage.new_request(hosts[0], hosts[1:], 10**6)) as grant,
            Captures(stage, all_hosts(stage), grant.groupAddress) as captures,
        ):
            assert send_and_see(captures, hosts[0], grant) == set(hosts[1:])
            assert send_and_see(captures, hosts[1], grant) == set()


def test_two_optical_ports_serve_two_groups_of_the_same_racks() -> None:
    plan = LabPlan(racks=3, hosts_per_rack=2, optical_ports_per_rack=2, splitters={4: 2})
    with running(plan) as stage:
        first = stage.new_request("r1h1", ["r2h1", "r3h1"], 10**6)
        second = stage.new_request("r2h2", ["r1h2", "r3h1", "r3h2"], 10**6)
        third = stage.new_request("r3h1", ["r1h1"], 10**6)
        with stage.granted(first) as one, stage.granted(second) as two:
            with pytest.raises(NotYet):
                stage.client.request(third, 0.1)
            for grant, sender, members in ((one, "r1h1", {"r2h1", "r3h1"}), (two, "r2h2", {"r1h2", "r3h1", "r3h2"})):
                with Captures(stage, all_hosts(stage), grant.groupAddress) as captures:
                    assert send_and_see(captures, sender, grant) == members
        assert stage.client.await_event(third.key, 0, 10).grant is not None
