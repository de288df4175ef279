"""Rules on real Open vSwitch bridges: forwarding, repairs by the controller, and the master role."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.integration.controller.openflow_harness import (
    FOREIGN_COOKIE,
    Bridge,
    ControllerProcess,
    Event,
    arp_frame,
    bridges,
    change,
    controller,
    cookie_of,
    dscp,
    forward,
    new_datapath,
    udp_frame,
)
from tests.support.waiting import eventually

pytestmark = pytest.mark.lab

SENDER, GROUP, OTHER = "10.0.0.1", "239.77.0.1", "239.77.0.2"
LIGHT, LIGHT2 = 5, 6
MARK = "actions=set_field:46->ip_dscp"
MAGIC = 0xB1A5 << 48
TREE = forward(1, SENDER, GROUP, 2, LIGHT)
SECOND_TREE = forward(LIGHT2, SENDER, OTHER, 3)
FLOOD = f"cookie={FOREIGN_COOKIE:#x},priority=10,actions=ALL"
"""The packet network of a ToR floods everything that it has no rule for: the guards must hold against it."""


@pytest.fixture(scope="module")
def datapath() -> int:
    return new_datapath()


@pytest.fixture(scope="module")
def process(datapath: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControllerProcess]:
    folder = tmp_path_factory.mktemp("openflow")
    with controller("os-ken", folder, {datapath: [LIGHT, LIGHT2]}, settings={"epoch": 3}) as running:
        yield running


@pytest.fixture(scope="module")
def bridge(process: ControllerProcess, datapath: int) -> Iterator[Bridge]:
    bridge = Bridge(process.port, datapath, 6)
    with bridges(bridge):
        process.expect(event="DeviceConnected", device=datapath)
        yield bridge


@pytest.fixture
def tor(process: ControllerProcess, bridge: Bridge) -> Bridge:
    """Return a ToR of six ports, 5 and 6 of them optical, that has no rules but guards and the fence."""
    bridge.clear()
    _observed(process, bridge)
    process.forget()
    return bridge


def _guards(epoch: int = 3) -> list[str]:
    cookie = f"cookie={MAGIC | epoch << 32:#x}"
    return sorted(
        [
            f"{cookie}, priority=30000,ip,nw_dst=239.77.0.0/16 actions=drop",
            f"{cookie}, priority=30000,in_port={LIGHT} actions=drop",
            f"{cookie}, priority=30000,in_port={LIGHT2} actions=drop",
            f"{cookie}, priority=40000,in_port={LIGHT},dl_type=0x88b5 actions=CONTROLLER:65535",
            f"{cookie}, priority=40000,in_port={LIGHT2},dl_type=0x88b5 actions=CONTROLLER:65535",
        ]
    )


def _named(rules: list[str], bridge: Bridge) -> list[str]:
    """Rules with port numbers in place of the names that ovs-ofctl prefers."""
    for n in range(1, bridge.ports + 1):
        rules = [rule.replace(f'"{bridge.prefix}p{n}"', str(n)) for rule in rules]
    return sorted(rules)


def _observed(process: ControllerProcess, tor: Bridge, how: str = "read") -> Event:
    process.ask(**{how: tor.datapath})
    return process.expect(event="TableObserved", datapath=tor.datapath)


def _held(event: Event) -> list[tuple[int, Any]]:
    """Return the forwards of a DeviceConnected or a TableObserved, with their reservations, in order."""
    return sorted((reservation, found) for reservation, found in event["rules"])


def _as_reported(*held: tuple[int, dict[str, Any]]) -> list[tuple[int, Any]]:
    return [(reservation, {**found, "outputs": list(found["outputs"])}) for reservation, found in held]


# -------------------------------------------------------------------------------------------------------- forwarding


def _shows_rules_come_and_go(process: ControllerProcess, tor: Bridge) -> None:
    assert _named(tor.our_rules(), tor) == _guards()
    process.confirm(tor.datapath, change(7, 1, add=[TREE]))
    (rule,) = set(_named(tor.our_rules(), tor)) - set(_guards())
    assert rule == (
        f"cookie={0xB1A5_0003_0000_0007:#x}, priority=40000,ip,in_port=1,nw_src={SENDER},nw_dst={GROUP} "
        f"{MARK},output:2,output:{LIGHT}"
    )
    process.confirm(tor.datapath, change(7, 2, remove=[TREE]))
    assert _named(tor.our_rules(), tor) == _guards()


@pytest.mark.component
def test_rules_have_cookie_match_and_action_and_are_deleted(process: ControllerProcess, tor: Bridge) -> None:
    _shows_rules_come_and_go(process, tor)


@pytest.mark.ryu
def test_ryu_writes_and_deletes_the_same_rules(tmp_path: Path) -> None:
    datapath = new_datapath()
    with controller("ryu", tmp_path, {datapath: [LIGHT, LIGHT2]}, settings={"epoch": 3}) as process:
        tor = Bridge(process.port, datapath, 6)
        with bridges(tor):
            process.expect(event="DeviceConnected", device=datapath)
            _shows_rules_come_and_go(process, tor)


@pytest.mark.component
def test_only_granted_group_is_forwarded_and_marked_with_dscp(process: ControllerProcess, tor: Bridge) -> None:
    foreign = "10.0.0.9"
    tor.add_rule(FLOOD)

    def ungranted_packets_reach_no_port() -> None:
        assert tor.reach(1, foreign, GROUP) == set(), "another address on the sender's port"
        assert tor.reach(2, SENDER, GROUP) == set(), "the sender's address on another port"
        assert tor.reach(1, SENDER, OTHER) == set(), "a group that was not granted"

    tor.settle(1, SENDER, GROUP, set())
    process.confirm(tor.datapath, change(7, 1, add=[forward(1, SENDER, GROUP, 3, LIGHT)]))
    tor.settle(1, SENDER, GROUP, {3, LIGHT})
    frames = tor.send(1, udp_frame(SENDER, GROUP))
    assert {port: dscp(frame) for port, frame in frames.items()} == {3: 46, LIGHT: 46}
    ungranted_packets_reach_no_port()
    process.confirm(tor.datapath, change(7, 2, remove=[forward(1, SENDER, GROUP, 3, LIGHT)]))
    tor.settle(1, SENDER, GROUP, set())
    ungranted_packets_reach_no_port()


def test_optical_port_forwards_only_granted_groups(process: ControllerProcess, tor: Bridge) -> None:
    tor.add_rule(FLOOD)
    process.confirm(tor.datapath, change(7, 1, add=[forward(LIGHT, SENDER, GROUP, 2, 4)]))
    tor.settle(LIGHT, SENDER, GROUP, {2, 4})
    assert tor.reach(LIGHT, "10.0.0.9", GROUP) == set()
    assert tor.reach(LIGHT, SENDER, OTHER) == set()
    assert tor.reach(LIGHT, SENDER, "10.0.0.2") == set()
    assert tor.send(LIGHT, arp_frame()) == {}
    assert tor.reach(LIGHT2, SENDER, GROUP) == set(), "the same group on another fiber"


def test_rule_that_another_reservation_has_replaced_is_not_deleted(process: ControllerProcess, tor: Bridge) -> None:
    process.confirm(tor.datapath, change(7, 1, add=[forward(1, SENDER, GROUP, 2)]))
    process.confirm(tor.datapath, change(8, 1, add=[forward(1, SENDER, GROUP, 3)]))
    process.confirm(tor.datapath, change(7, 2, remove=[forward(1, SENDER, GROUP, 2)]))
    tor.settle(1, SENDER, GROUP, {3})
    assert {cookie_of(rule) & 0xFFFF_FFFF for rule in tor.our_rules()} == {0, 8}


def test_refused_rule_fails_its_step_and_no_other(process: ControllerProcess, tor: Bridge) -> None:
    process.apply(
        tor.datapath,
        change(7, 1, add=[forward(1, SENDER, GROUP, 70_000)]),
        change(8, 1, add=[forward(2, SENDER, GROUP, LIGHT)]),
    )
    failed = process.expect(event="StepFailed", device=tor.datapath, reservation=7, step=1)
    assert "OFPET_BAD_ACTION, OFPBAC_BAD_OUT_PORT" in failed["reason"]
    process.expect(event="StepConfirmed", device=tor.datapath, reservation=8, step=1)
    process.expect_none(reservation=7)
    assert {cookie_of(rule) & 0xFFFF_FFFF for rule in tor.our_rules()} == {0, 8}


def test_full_table_fails_step_and_keeps_existing_rules(process: ControllerProcess, tor: Bridge) -> None:
    process.confirm(tor.datapath, change(7, 1, add=[TREE]), change(8, 1, add=[SECOND_TREE]))
    before = tor.rules()
    third = forward(2, SENDER, GROUP, 3)
    with tor.rules_limited_to(len(before)):
        process.apply(tor.datapath, change(9, 1, add=[third]), change(7, 2, remove=[TREE], add=[third]))
        for reservation, step in ((9, 1), (7, 2)):
            failed = process.expect(event="StepFailed", reservation=reservation, step=step)
            assert "OFPFMFC_TABLE_FULL" in failed["reason"]
        assert tor.rules() == before, "the old rule stays because the new one was refused"
        process.confirm(tor.datapath, change(8, 2, remove=[SECOND_TREE]), change(9, 2, add=[third]))
        assert _held(_observed(process, tor)) == _as_reported((7, TREE), (9, third))


# --------------------------------------------------------------------------------------------------------- repairing


def test_only_foreign_rule_with_same_match_is_replaced(process: ControllerProcess, tor: Bridge) -> None:
    foreign = ["priority=40000,ip,in_port=1,nw_src=10.0.0.1,nw_dst=239.77.0.8", "priority=7", "table=9,priority=7"]
    tor.add_rules(f"cookie=0xb1a4000000000001,{text},actions=drop" for text in foreign)
    before = [rule for rule in tor.rules() if "cookie=0xb1a5" not in rule]
    assert len(before) == len(foreign) + 1
    process.confirm(tor.datapath, change(9, 1, add=[forward(1, SENDER, "239.77.0.8", LIGHT)]))
    process.confirm(tor.datapath, change(10, 1, remove=[forward(1, SENDER, "239.77.0.8", LIGHT)]))
    process.confirm(tor.datapath, change(9, 2, remove=[forward(1, SENDER, "239.77.0.8", LIGHT)]))
    remaining = [rule for rule in tor.rules() if "cookie=0xb1a5" not in rule]
    assert remaining == [rule for rule in before if "239.77.0.8" not in rule]


def _rule(epoch: int, reservation: int, rest: str) -> str:
    return f"cookie={MAGIC | epoch << 32 | reservation:#x},{rest}"


SPOILT = [
    # A forward of ours that would vanish by itself, one with a match that we never write, one in another table, one
    # that changes the packet.
    _rule(2, 21, "priority=40000,hard_timeout=600,ip,in_port=2,nw_src=10.0.0.2,nw_dst=239.77.0.5,actions=output:3"),
    _rule(2, 22, "priority=40000,tcp,in_port=2,tp_dst=80,actions=output:3"),
    _rule(2, 23, "table=4,priority=40000,ip,in_port=2,nw_src=10.0.0.2,nw_dst=239.77.0.6,actions=output:3"),
    _rule(2, 24, "priority=40000,ip,in_port=2,nw_src=10.0.0.2,nw_dst=239.77.0.7,actions=mod_vlan_vid:5,output:3"),
    # A guard that lets light through, and one of a port that is no longer optical.
    _rule(2, 0, f"priority=30000,in_port={LIGHT},actions=output:1"),
    _rule(2, 0, "priority=30000,in_port=4,actions=drop"),
]
STALE = _rule(1, 99, f"priority=40000,ip,in_port=3,nw_src=10.0.0.3,nw_dst=239.77.0.9,{MARK},output:{LIGHT}")
STALE_FORWARD = forward(3, "10.0.0.3", "239.77.0.9", LIGHT)


def test_reading_repairs_stale_missing_and_wrong_rules(process: ControllerProcess, tor: Bridge) -> None:
    process.confirm(tor.datapath, change(7, 1, add=[TREE]), change(8, 1, add=[SECOND_TREE]))
    tor.add_rules(["cookie=0xb1a4000000000001,priority=7,actions=drop", "cookie=0x9,table=9,priority=7,actions=drop"])
    right = tor.rules()
    observed = _observed(process, tor)
    assert (_held(observed), observed["foreign"]) == (_as_reported((7, TREE), (8, SECOND_TREE)), 3)
    tor.add_rules([*SPOILT, STALE])
    tor.delete_rules(f"cookie={MAGIC | 3 << 32:#x}/-1,in_port={LIGHT2}")
    tor.delete_rules(f"cookie={MAGIC | 3 << 32 | 8:#x}/-1")
    spoilt = tor.rules()
    assert _held(_observed(process, tor, "look")) == _as_reported((7, TREE), (99, STALE_FORWARD))
    assert tor.rules() == spoilt, "a look changes nothing"
    # The core decides about stale forwards: they are reported, and so is, by its absence, a missing one.
    assert _held(_observed(process, tor)) == _as_reported((7, TREE), (99, STALE_FORWARD))
    process.confirm(tor.datapath, change(99, 1, remove=[STALE_FORWARD]), change(8, 2, add=[SECOND_TREE]))
    assert tor.rules() == right


def test_deleted_bridge_is_down_and_a_new_one_gets_its_guards(process: ControllerProcess, tor: Bridge) -> None:
    process.confirm(tor.datapath, change(7, 1, add=[TREE]))
    tor.delete_bridge()
    process.expect(event="DeviceDisconnected", device=tor.datapath)
    process.apply(tor.datapath, change(7, 2, remove=[TREE]))
    assert "is not connected" in process.expect(event="StepFailed", reservation=7, step=2)["reason"]
    tor.make_bridge()
    process.expect(event="DeviceConnected", device=tor.datapath)
    assert _named(tor.our_rules(), tor) == _guards()


def test_restarted_controller_touches_no_rule_and_loses_no_packet(tmp_path: Path) -> None:
    datapath = new_datapath()
    known: dict[int, list[int]] = {datapath: [LIGHT, LIGHT2]}
    with ExitStack() as stack:
        with controller("os-ken", tmp_path, known, settings={"epoch": 2}, generation=2) as first:
            tor = Bridge(first.port, datapath, 6)
            stack.enter_context(bridges(tor))
            first.expect(event="DeviceConnected", device=datapath)
            first.confirm(datapath, change(7, 1, add=[TREE]), change(8, 1, add=[SECOND_TREE]))
            tor.settle(1, SENDER, GROUP, {2, LIGHT})
            before, seen = tor.ages(), time.monotonic()
        assert tor.reach(1, SENDER, GROUP) == {2, LIGHT}
        second = stack.enter_context(controller("os-ken", tmp_path, known, settings={"epoch": 3}, generation=3))
        tor.controlled_by(second.port)
        found = second.expect(event="DeviceConnected", device=datapath)
        assert _held(found) == _as_reported((7, TREE), (8, SECOND_TREE))
        assert tor.reach(1, SENDER, GROUP) == {2, LIGHT}
        # Statistics lag behind the packets a little.
        tree = next(rule for rule in before if GROUP in rule and "/16" not in rule)
        eventually(lambda: tor.ages()[tree][1] >= before[tree][1] + 2, "the packets to be counted")
        after, elapsed = tor.ages(), time.monotonic() - seen
        assert after.keys() == before.keys()
        for rule, (age, packets) in before.items():
            assert after[rule][0] >= age + elapsed - 0.5, "the rule was written again"
            assert after[rule][1] >= packets
        second.confirm(datapath, change(7, 2, remove=[TREE]))
        assert _held(_observed(second, tor)) == _as_reported((8, SECOND_TREE))


# ------------------------------------------------------------------------------------------ roles, probes and ports


def test_standby_takes_over_tor_and_old_master_is_rejected(tmp_path: Path) -> None:
    datapath = new_datapath()
    step = change(7, 1, add=[TREE])
    with ExitStack() as stack:

        def run(name: str, generation: int | None) -> ControllerProcess:
            (folder := tmp_path / name).mkdir()
            content = {"generation": generation, "settings": {"epoch": generation or 0}}
            return stack.enter_context(controller("os-ken", folder, {datapath: [LIGHT, LIGHT2]}, **content))

        master, standby = run("master", 5), run("standby", None)
        tor = Bridge(master.port, datapath, 6)
        stack.enter_context(bridges(tor))
        master.expect(event="DeviceConnected", device=datapath)
        master.confirm(datapath, step)
        before = tor.ages()
        tor.controlled_by(master.port, standby.port)
        standby.apply(datapath, change(8, 1, add=step["add"]))
        assert "is not connected" in standby.expect(event="StepFailed", reservation=8)["reason"]
        standby.ask(lead=6, epoch=6)
        up = standby.expect(event="DeviceConnected", device=datapath)
        assert [reservation for reservation, _ in up["rules"]] == [7]
        down = master.expect(event="DeviceDisconnected", device=datapath)
        assert down["reason"] == "another controller is the master of this ToR"
        assert tor.ages().keys() == before.keys(), "right rules were not touched"
        # A third one of the old generation is refused each time that the ToR connects, and logs it once.
        late = run("late", 5)
        tor.controlled_by(standby.port, late.port)
        refused = late.expect(event="DeviceDisconnected", device=datapath)
        assert refused["reason"].startswith("another controller is the master of this ToR")
        late.apply(datapath, step)
        assert "is not connected" in late.expect(event="StepFailed", reservation=7)["reason"]
        assert not [line for line in late.logged() if "WARNING" in line]
        late.expect_none(device=datapath)
        standby.confirm(datapath, change(7, 2, remove=step["add"]))
        standby.expect_none(event="DeviceDisconnected")


def test_probe_frame_is_reported_where_its_fiber_ends(tmp_path: Path) -> None:
    """Port 5 of one ToR and port 6 of the other are the ends of one fiber; the other optical ports are dark."""
    left, right = new_datapath(), new_datapath()
    with controller("os-ken", tmp_path, {left: [LIGHT, LIGHT2], right: [LIGHT, LIGHT2]}) as process:
        sender, receiver = Bridge(process.port, left, 6), Bridge(process.port, right, 6)
        with bridges(sender, receiver), sender.fiber(LIGHT, receiver, LIGHT2):
            for tor in (sender, receiver):
                process.expect(event="DeviceConnected", device=tor.datapath)
                tor.add_rule(f"cookie={FOREIGN_COOKIE:#x},priority=10,actions=output:1,output:2,output:3,output:4")
            process.ask(probe=left, port=LIGHT2, payload="01")
            process.ask(probe=left, port=999, payload="02")
            # A probe that a host sends is a frame for the packet network like any other.
            sender.sockets[1].send(bytes.fromhex("02b1a500000202b1a500000188b5b1a50b0e000103").ljust(60, b"\0"))
            process.ask(probe=left, port=LIGHT, payload="00ff c0ffee")
            seen = process.expect(event="ProbeReceived")
            assert (seen["datapath"], seen["port"], seen["payload"]) == (right, LIGHT2, "00ffc0ffee")
            process.confirm(left, change(7, 1, add=[TREE]))
            process.expect_none(event="ProbeReceived")


def test_ports_are_reported_at_connection_and_when_they_change(tmp_path: Path) -> None:
    datapath = new_datapath()
    with controller("os-ken", tmp_path, {datapath: [LIGHT, LIGHT2, 9]}) as process:
        tor = Bridge(process.port, datapath, 6)
        with bridges(tor):
            process.expect(event="DeviceConnected", device=datapath)
            first = [process.expect(event="PortChanged", datapath=datapath) for _ in range(3)]
            assert sorted((port["port"], port["up"]) for port in first) == [(LIGHT, True), (LIGHT2, True), (9, False)]
            assert [port["reason"] for port in first if port["reason"]] == ["the ToR has no such port"]
            tor.cut(1)
            tor.cut(LIGHT)
            dark = process.expect(event="PortChanged", datapath=datapath, port=LIGHT)
            assert (dark["up"], dark["reason"]) == (False, "it has no link")
            tor.cut(LIGHT, "up")
            assert process.expect(event="PortChanged", datapath=datapath, port=LIGHT)["up"]
            subprocess.run(["ovs-vsctl", "del-port", tor.name, f"{tor.prefix}p{LIGHT2}"], check=True)
            removed = process.expect(event="PortChanged", datapath=datapath, port=LIGHT2)
            assert (removed["up"], removed["reason"]) == (False, "the ToR no longer has this port")
            process.expect_none(event="PortChanged", port=1)
