"""The whole chain in a lab: Thrift client, controller, TL1, OpenFlow, light, packets at hosts."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from blast_api.ttypes import Ended, Extension, FabricStatus, Grant, PartState, Rejected, TimedOut
from blast_client import Client
from mininet_topos.demo.capture import Captures
from mininet_topos.demo.results import Results
from mininet_topos.demo.stage import Stage
from mininet_topos.topology.plan import LabPlan, preset
from optical_switch.model import Circuit
from tests.support.interrupted import frozen
from tests.support.waiting import eventually, look_until
from tl1_driver.client import SwitchClient
from tl1_driver.dialects import DIALECTS

pytestmark = pytest.mark.lab

PACKETS = 10
LEASE_MS = 120_000
"""Longer than any test: silence is waited for many times."""


@contextmanager
def running(plan: LabPlan, knows_losses: bool = False) -> Iterator[Stage]:
    # Mininet is not everywhere where tests are collected.
    from mininet_topos.lab.lab import Lab

    # The controller must not reconcile between a test's change of a device and the request that follows.
    lab = Lab(plan, knows_losses=knows_losses, min_lease_ms=LEASE_MS, reconcile_interval_ms=3_600_000)
    with lab, Client(lab.thrift) as client:
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
    """Yield the shared lab, dark before and after each test."""
    eight_racks.wait_dark()
    yield eight_racks
    for request in eight_racks.client.list_requests([PartState.PENDING, PartState.CONFIGURING, PartState.ACTIVE]):
        eight_racks.client.withdraw(request.key)
    eight_racks.wait_dark()


def all_hosts(stage: Stage) -> list[str]:
    return [host.name for rack in stage.lab.plan.rack_plans for host in rack.hosts]


def assert_reaches(captures: Captures, sender: str, grant: Grant, hosts: set[str], message: str = "") -> None:
    """Wait until `hosts` have all packets, since a busy switch may pause, and then for silence."""
    captures.send(sender, grant, PACKETS)
    assert captures.reached(PACKETS, hosts) == hosts, message


def test_packets_reach_only_members_and_only_during_grant(stage: Stage) -> None:
    members = ["r2h1", "r3h2", "r4h1", "r4h2", "r6h1", "r1h2", "r7h2"]
    request = stage.new_request("r1h1", members, 10**7)
    probe = stage.new_request("r1h1", members, 10**7)
    with stage.granted(probe) as old:
        pass
    stage.wait_dark()
    _wait_until_uncached()
    with Captures(stage, all_hosts(stage), old.groupAddress) as captures:
        assert_reaches(captures, "r1h1", old, set(), "a group that was released still reaches someone")
    with stage.granted(request) as grant, Captures(stage, all_hosts(stage), grant.groupAddress) as captures:
        assert_reaches(captures, "r1h1", grant, set(members))
        assert_reaches(captures, "r1h2", grant, set(), "a member in the sender's rack that is not the sender")
        assert_reaches(captures, "r2h2", grant, set(), "another host in a member's rack")
        assert_reaches(captures, "r8h1", grant, set(), "a host of another rack")
    stage.wait_dark()
    _wait_until_uncached()
    with Captures(stage, all_hosts(stage), grant.groupAddress) as captures:
        assert_reaches(captures, "r1h1", grant, set())


def test_branch_without_its_cross_connect_is_dark(stage: Stage) -> None:
    members = [f"r{rack}h1" for rack in range(2, 9)]
    with stage.granted(stage.new_request("r1h1", members, 10**7)) as grant:
        (tree,) = stage.client.fabric().lightTrees
        assert len(tree.crossConnects) == 9, "two splitters and seven leaves"
        fabric = stage.client.fabric()
        # A running controller would restore the cross-connect.
        with Captures(stage, all_hosts(stage), grant.groupAddress) as captures, frozen(stage.lab.controller_pid):
            for circuit in tree.crossConnects:
                pair = Circuit(circuit.switchInput, circuit.switchOutput)
                _tl1(stage, "disconnect", pair)
                lit = set(members) - _below(fabric, tree.crossConnects, pair.output)
                assert_reaches(captures, "r1h1", grant, lit)
                _tl1(stage, "connect", pair)
            assert_reaches(captures, "r1h1", grant, set(members))


def _tl1(stage: Stage, command: str, *circuits: Circuit) -> None:
    host, port = stage.lab.switch_address.split(":")

    async def go() -> None:
        client = SwitchClient(host, int(port), DIALECTS["glimmerglass"])
        await client.open()
        try:
            await getattr(client, command)(list(circuits))
        finally:
            await client.close()

    asyncio.run(go())
    # The emulated switch is an Open vSwitch too: its cached circuits would still apply.
    _wait_until_uncached()


def _below(fabric: FabricStatus, circuits: list, output: int) -> set[str]:
    """Return the first host of each rack that this switch output feeds, found by a walk along the circuits."""
    racks = {port.switchOutput: rack.name for rack in fabric.racks for port in rack.opticalPorts}
    if output in racks:
        return {f"{racks[output]}h1"}
    splitter = next(s for s in fabric.splitters if s.switchOutput == output)
    below = [c.switchOutput for c in circuits if c.switchInput in splitter.switchInputs]
    return set().union(*(_below(fabric, circuits, o) for o in below))


def test_branch_without_its_rule_is_dark(stage: Stage) -> None:
    members = ["r2h1", "r3h1", "r4h1"]
    with (
        stage.granted(stage.new_request("r1h1", members, 10**7)) as grant,
        Captures(stage, all_hosts(stage), grant.groupAddress) as captures,
        frozen(stage.lab.controller_pid),
    ):
        for rack in (2, 3, 4, 1):
            bridge = stage.lab.names.bridge(rack)
            match = f"ip,nw_dst={grant.groupAddress}"
            rules = _ofctl("dump-flows", bridge, match)
            assert "set_field" in rules or rack != 1
            _ofctl("del-flows", bridge, match)
            _wait_until_uncached()
            dark = set(members) if rack == 1 else {f"r{rack}h1"}
            members = [m for m in members if m not in dark]
            assert_reaches(captures, "r1h1", grant, set(members))


def _wait_until_uncached() -> None:
    """Open vSwitch forgets what it has cached of a rule a moment after it has confirmed that the rule has changed."""
    subprocess.run(["ovs-appctl", "revalidator/wait"], check=True)


def _ofctl(command: str, bridge: str, match: str) -> str:
    done = subprocess.run(
        ["ovs-ofctl", "-O", "OpenFlow13", command, bridge, match], check=True, capture_output=True, text=True
    )
    return done.stdout


def test_one_rack_needs_no_circuit_and_two_need_no_splitter(stage: Stage) -> None:
    with stage.granted(stage.new_request("r1h1", ["r1h2"], 10**6)) as grant:
        (tree,) = stage.client.fabric().lightTrees
        assert tree.crossConnects == [] and tree.splitters == []
        with Captures(stage, all_hosts(stage), grant.groupAddress) as captures:
            assert_reaches(captures, "r1h1", grant, {"r1h2"})
    stage.wait_dark()
    with stage.granted(stage.new_request("r1h1", ["r5h1", "r5h2"], 10**6)) as grant:
        (tree,) = stage.client.fabric().lightTrees
        assert len(tree.crossConnects) == 1 and tree.splitters == []
        with Captures(stage, all_hosts(stage), grant.groupAddress) as captures:
            assert_reaches(captures, "r1h1", grant, {"r5h1", "r5h2"})


def test_extend_adds_leaves_without_packet_loss(stage: Stage) -> None:
    request = stage.new_request("r1h1", ["r2h1", "r3h1"], 10**7)
    with (
        stage.granted(request) as grant,
        Captures(stage, all_hosts(stage), grant.groupAddress) as captures,
        Client(stage.lab.thrift) as other,
    ):
        sent, extended = list[int](), threading.Event()

        def send() -> None:
            while not extended.is_set():
                captures.send("r1h1", grant, PACKETS)
                sent.append(PACKETS)
            captures.send("r1h1", grant, PACKETS)
            sent.append(PACKETS)

        sending = threading.Thread(target=send)
        sending.start()
        eventually(lambda: sent, "packets before the extension")
        try:
            other.extend(request.key, Extension(addReceivers=["r4h1", "r5h1", "r2h2"]))
        finally:
            extended.set()
            sending.join()
        counts = Counter[str]()

        def arrived() -> tuple[int, int]:
            # A busy machine may be quiet for a while with packets under way.
            counts.update(captures.counts())
            return counts["r2h1"], counts["r3h1"]

        look_until(arrived, lambda seen: min(seen) >= sum(sent), "all packets at the remaining receivers")
        assert arrived() == (sum(sent), sum(sent))
        assert set(counts) == {"r2h1", "r3h1", "r4h1", "r5h1", "r2h2"}


ARP_REQUEST = "0806" + "0001080006040001" + "02b1a5000101" + "0a000101" + "000000000000" + "0a00fa01"
STRAY_FRAMES = {
    "ARP request": ("ffffffffffff", ARP_REQUEST),
    "broadcast": ("ffffffffffff", "88b5"),
    "unknown unicast": ("020000000099", "88b5"),
    "unknown multicast": ("01005e7f0909", "88b5"),
    "IPv6 multicast": ("333300000001", "86dd"),
}
FRAMES = 10


@pytest.mark.parametrize("host", ["r1h1", "r1h2", "r2h1"])
def test_stray_packets_do_not_enter_optical_ports(stage: Stage, host: str) -> None:
    """Stray frames of the sender, its neighbor and a receiver stay out; granted packets do leave."""
    rack = stage.rack_number(host)
    with stage.granted(stage.new_request("r1h1", ["r2h1", "r3h1"], 10**6)) as grant:
        before, uplink = _put_into_light(stage), stage.lab.counters.uplink(rack).sent_packets
        for destination, rest in STRAY_FRAMES.values():
            _send_frames(stage, host, destination, rest)
        # Broadcasts and the unknown unicast take the packet network: so the frames have reached the ToR.
        _wait_until_sent(stage, rack, uplink + 3 * FRAMES)
        assert _put_into_light(stage) == before
        with Captures(stage, all_hosts(stage), grant.groupAddress) as captures:
            captures.send("r1h1", grant, PACKETS)
            captures.counts()
        after = _put_into_light(stage)
    assert {rack: after[rack] - before[rack] for rack in after if after[rack] != before[rack]} == {1: PACKETS}


def _put_into_light(stage: Stage) -> dict[int, int]:
    """Return the number of packets that each rack's optical port has sent."""
    return {rack.number: stage.lab.counters.optical(rack.number).sent_packets for rack in stage.lab.plan.rack_plans}


def _send_frames(stage: Stage, host: str, destination: str, rest: str) -> None:
    """Send frames from a host, bypassing its network stack."""
    node = stage.lab.host(host)
    frame = bytes.fromhex(destination + node.MAC().replace(":", "") + rest).ljust(100, b"\0")
    with stage.lab.open_socket(host, socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind((node.defaultIntf().name, 0))
        for _ in range(FRAMES):
            sender.send(frame)


def _wait_until_sent(stage: Stage, rack: int, packets: int) -> None:
    eventually(lambda: stage.lab.counters.uplink(rack).sent_packets >= packets, "the packet network to carry it")


def test_request_fails_cleanly_on_foreign_cross_connect(stage: Stage) -> None:
    """A rack's port is connected manually after the controller read the switch: it denies, and nothing leaks."""
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


def test_multicast_reaches_racks_on_one_datapath() -> None:
    with running(preset("paper-testbed")) as stage:
        hosts = stage.first_hosts()
        with (
            stage.granted(stage.new_request(hosts[0], hosts[1:], 10**6)) as grant,
            Captures(stage, all_hosts(stage), grant.groupAddress) as captures,
        ):
            assert_reaches(captures, hosts[0], grant, set(hosts[1:]))
            assert_reaches(captures, hosts[1], grant, set())


def test_two_optical_ports_serve_two_groups_of_the_same_racks() -> None:
    plan = LabPlan(racks=3, hosts_per_rack=2, optical_ports_per_rack=2, splitters={4: 2})
    with running(plan) as stage:
        first = stage.new_request("r1h1", ["r2h1", "r3h1"], 10**6)
        second = stage.new_request("r2h2", ["r1h2", "r3h1", "r3h2"], 10**6)
        third = stage.new_request("r3h1", ["r1h1"], 10**6)
        with stage.granted(first) as one, stage.granted(second) as two:
            with pytest.raises(TimedOut):
                stage.client.request(third, 0.1)
            for grant, sender, members in ((one, "r1h1", {"r2h1", "r3h1"}), (two, "r2h2", {"r1h2", "r3h1", "r3h2"})):
                with Captures(stage, all_hosts(stage), grant.groupAddress) as captures:
                    assert_reaches(captures, sender, grant, members)
        assert stage.client.await_event(third.key, 0, 10).grant is not None


@pytest.fixture(scope="module")
def wide_lab() -> Iterator[Stage]:
    """32 racks; splitters 1:4, 1:8 and 1:16, of which two in a row would be dark."""
    with running(preset("wide"), knows_losses=True) as stage:
        yield stage


@pytest.mark.parametrize("receivers", [31, 9])
def test_mixed_splitters_reach_exactly_the_members(wide_lab: Stage, receivers: int) -> None:
    wide_lab.wait_dark()
    hosts = wide_lab.first_hosts()
    # The sender is another one each time, and so are the members next to it.
    sender, *members = [hosts[(receivers + n) % len(hosts)] for n in range(receivers + 1)]
    with (
        wide_lab.granted(wide_lab.new_request(sender, members, 10**6)) as grant,
        Captures(wide_lab, hosts, grant.groupAddress) as captures,
    ):
        (tree,) = wide_lab.client.fabric().lightTrees
        fan_out = {splitter.name: splitter.fanOut for splitter in wide_lab.client.fabric().splitters}
        assert 1 + sum(fan_out[name] - 1 for name in tree.splitters) >= receivers
        assert_reaches(captures, sender, grant, set(members))
        assert_reaches(captures, members[0], grant, set(), "a member is no sender")


def test_loop_leaf_reaches_receiver_in_rack_of_sender_once() -> None:
    plan = LabPlan(racks=5, hosts_per_rack=2, splitters={4: 1}, loop_leaf=True)
    with running(plan) as stage:
        members = ["r2h1", "r3h1", "r3h2", "r1h2"]
        before = {rack.number: stage.lab.counters.optical(rack.number) for rack in plan.rack_plans}
        with (
            stage.granted(stage.new_request("r1h1", members, 10**6)) as grant,
            Captures(stage, all_hosts(stage), grant.groupAddress) as captures,
        ):
            (tree,) = stage.client.fabric().lightTrees
            assert sorted(tree.leafRacks) == ["r1", "r2", "r3"]
            # `reached` refuses a packet that came twice: by the ToR and by the looped light.
            assert_reaches(captures, "r1h1", grant, set(members))
            assert_reaches(captures, "r1h2", grant, set(), "a member is no sender")
        seen = {
            n: stage.lab.counters.optical(n).received_packets - start.received_packets for n, start in before.items()
        }
        assert seen == {1: PACKETS, 2: PACKETS, 3: PACKETS, 4: 0, 5: 0}
        stage.wait_dark()
        with pytest.raises(Rejected) as refused:
            stage.client.submit(stage.new_request("r1h1", ["r2h1", "r3h1", "r4h1", "r5h1"], 10**6))
        assert (refused.value.code, refused.value.maxRacks) == ("group_too_wide", 4)
