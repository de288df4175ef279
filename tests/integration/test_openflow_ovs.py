"""Rules on real Open vSwitch bridges, and where packets then go; on os-ken and on ryu."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.integration.openflow_harness import (
    FRAMEWORKS,
    Bridge,
    ControllerProcess,
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

pytestmark = [pytest.mark.lab, pytest.mark.parametrize("framework", FRAMEWORKS)]

SENDER, GROUP = "10.0.0.1", "239.77.0.1"
LIGHT, LIGHT2 = 5, 6
MARKED = "set_field:46->ip_dscp"

Up = Callable[..., tuple[ControllerProcess, Bridge]]


@pytest.fixture
def up(framework: str, tmp_path: Path) -> Iterator[Up]:
    """A controller and one connected ToR of six ports, 5 and 6 of them optical."""
    with ExitStack() as stack:

        def start(
            before: Callable[[Bridge], None] = lambda _: None, **content: object
        ) -> tuple[ControllerProcess, Bridge]:
            datapath = new_datapath()
            process = stack.enter_context(
                controller(framework, tmp_path, {datapath: [LIGHT, LIGHT2]}, settings={"epoch": 3}, **content)
            )
            bridge = Bridge(process.port, datapath, 6)
            stack.enter_context(bridges(bridge))
            process.expect(event="DeviceUp", device=datapath)
            return process, bridge

        yield start


def _guards(epoch: int = 3) -> list[str]:
    cookie = f"cookie={0xB1A5 << 48 | epoch << 32:#x}"
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


def test_rules_come_with_cookie_match_and_action_and_go(up: Up) -> None:
    process, tor = up()
    assert _named(tor.our_rules(), tor) == _guards()
    process.confirm(tor.datapath, change(7, 1, add=[forward(1, SENDER, GROUP, 2, LIGHT)]))
    (rule,) = set(_named(tor.our_rules(), tor)) - set(_guards())
    assert rule == (
        f"cookie={0xB1A5_0003_0000_0007:#x}, priority=40000,ip,in_port=1,nw_src={SENDER},nw_dst={GROUP} "
        f"actions={MARKED},output:2,output:{LIGHT}"
    )
    process.confirm(tor.datapath, change(7, 2, remove=[forward(1, SENDER, GROUP, 2, LIGHT)]))
    assert _named(tor.our_rules(), tor) == _guards()


def test_a_group_reaches_exactly_its_outputs_marked_and_a_stranger_nobody(up: Up) -> None:
    process, tor = up()
    stranger = "10.0.0.9"
    # The packet network of this ToR floods everything it knows nothing about: the guards must hold against it.
    tor.add_rule("cookie=0x51,priority=10,actions=ALL")

    def strangers_reach_nobody() -> None:
        assert tor.reach(1, stranger, GROUP) == set(), "another address on the sender's port"
        assert tor.reach(2, SENDER, GROUP) == set(), "the sender's address on another port"
        assert tor.reach(2, stranger, GROUP) == set()
        assert tor.reach(1, SENDER, "239.77.0.2") == set(), "a group that was not granted"

    assert tor.reach(1, SENDER, GROUP) == set()
    strangers_reach_nobody()
    process.confirm(tor.datapath, change(7, 1, add=[forward(1, SENDER, GROUP, 3, LIGHT)]))
    tor.settle(1, SENDER, GROUP, {3, LIGHT})
    frames = tor.send(1, udp_frame(SENDER, GROUP))
    assert {port: dscp(frame) for port, frame in frames.items()} == {3: 46, LIGHT: 46}
    strangers_reach_nobody()
    process.confirm(tor.datapath, change(7, 2, remove=[forward(1, SENDER, GROUP, 3, LIGHT)]))
    tor.settle(1, SENDER, GROUP, set())
    strangers_reach_nobody()


def test_light_carries_granted_groups_and_nothing_else(up: Up) -> None:
    process, tor = up()
    tor.add_rule("cookie=0x51,priority=10,actions=ALL")
    process.confirm(tor.datapath, change(7, 1, add=[forward(LIGHT, SENDER, GROUP, 2, 4)]))
    tor.settle(LIGHT, SENDER, GROUP, {2, 4})
    assert tor.reach(LIGHT, "10.0.0.9", GROUP) == set()
    assert tor.reach(LIGHT, SENDER, "239.77.0.2") == set()
    assert tor.reach(LIGHT, SENDER, "10.0.0.2") == set()
    assert tor.send(LIGHT, arp_frame()) == {}
    assert tor.reach(LIGHT2, SENDER, GROUP) == set(), "the same group on another fibre"


def test_several_racks_on_one_datapath_and_two_optical_ports(up: Up) -> None:
    """Ports 1 and 2 are rack A with light 5, 3 and 4 rack B with light 6; one decision serves both ways at once."""
    process, tor = up()
    other = "239.77.0.2"
    process.confirm(
        tor.datapath,
        change(7, 1, add=[forward(1, SENDER, GROUP, LIGHT), forward(LIGHT2, SENDER, GROUP, 3, 4)]),
        change(8, 1, add=[forward(3, "10.0.0.3", other, LIGHT2), forward(LIGHT, "10.0.0.3", other, 2)]),
    )
    tor.settle(1, SENDER, GROUP, {LIGHT})
    tor.settle(LIGHT2, SENDER, GROUP, {3, 4})
    tor.settle(3, "10.0.0.3", other, {LIGHT2})
    tor.settle(LIGHT, "10.0.0.3", other, {2})
    assert tor.reach(LIGHT, SENDER, GROUP) == set()
    process.confirm(
        tor.datapath, change(7, 2, remove=[forward(1, SENDER, GROUP, LIGHT), forward(LIGHT2, SENDER, GROUP, 3, 4)])
    )
    tor.settle(1, SENDER, GROUP, set())
    tor.settle(3, "10.0.0.3", other, {LIGHT2})


def test_a_key_passes_from_one_reservation_to_the_next(up: Up) -> None:
    process, tor = up()
    process.confirm(tor.datapath, change(7, 1, add=[forward(1, SENDER, GROUP, 2)]))
    process.confirm(tor.datapath, change(8, 1, add=[forward(1, SENDER, GROUP, 3)]))
    process.confirm(tor.datapath, change(7, 2, remove=[forward(1, SENDER, GROUP, 2)]))
    tor.settle(1, SENDER, GROUP, {3})
    assert {cookie_of(rule) & 0xFFFF_FFFF for rule in tor.our_rules()} == {0, 8}
    process.confirm(
        tor.datapath, change(8, 2, remove=[forward(1, SENDER, GROUP, 3)], add=[forward(1, SENDER, GROUP, 4)])
    )
    tor.settle(1, SENDER, GROUP, {4})


def test_a_refused_rule_fails_its_step_and_no_other(up: Up) -> None:
    process, tor = up()
    process.apply(
        tor.datapath,
        change(7, 1, add=[forward(1, SENDER, GROUP, 70_000)]),
        change(8, 1, add=[forward(2, SENDER, GROUP, LIGHT)]),
    )
    failed = process.expect(event="StepFailed", device=tor.datapath, reservation=7, step=1)
    assert "OFPET_BAD_ACTION, OFPBAC_BAD_OUT_PORT" in failed["reason"]
    process.expect(event="StepConfirmed", device=tor.datapath, reservation=8, step=1)
    process.expect_none(0.1, reservation=7)
    assert {cookie_of(rule) & 0xFFFF_FFFF for rule in tor.our_rules()} == {0, 8}


def test_a_forward_that_no_rule_can_express_fails_its_step(up: Up) -> None:
    process, tor = up()
    process.apply(
        tor.datapath,
        change(7, 1, add=[forward(1, SENDER, "10.0.0.2", LIGHT)]),
        change(8, 1, add=[forward(2, SENDER, GROUP, LIGHT)]),
    )
    failed = process.expect(event="StepFailed", reservation=7)
    assert "10.0.0.2 is not a multicast address" in failed["reason"]
    process.expect(event="StepConfirmed", reservation=8)


def test_a_deleted_bridge_is_down_and_a_new_one_up_with_its_guards(up: Up) -> None:
    process, tor = up()
    process.confirm(tor.datapath, change(7, 1, add=[forward(1, SENDER, GROUP, LIGHT)]))
    tor.delete_bridge()
    process.expect(event="DeviceDown", device=tor.datapath, timeout=3.0)
    process.apply(tor.datapath, change(7, 2, remove=[forward(1, SENDER, GROUP, LIGHT)]))
    assert "is not connected" in process.expect(event="StepFailed", reservation=7, step=2)["reason"]
    tor.make_bridge()
    process.expect(event="DeviceUp", device=tor.datapath)
    assert _named(tor.our_rules(), tor) == _guards()


def test_a_datapath_that_no_rack_names_keeps_its_rules(framework: str, tmp_path: Path) -> None:
    with controller(framework, tmp_path, {1: [LIGHT]}) as process:
        stranger = Bridge(process.port, new_datapath(), 2)
        with bridges(stranger):
            process.expect_none(2.0, device=stranger.datapath)
            assert len(stranger.rules()) == 1


def test_a_foreign_rule_in_the_very_same_place_is_replaced_and_nothing_else_of_theirs_is_touched(up: Up) -> None:
    process, tor = up()
    foreign = ["priority=40000,ip,in_port=1,nw_src=10.0.0.1,nw_dst=239.77.0.8", "priority=7", "table=9,priority=7"]
    for text in foreign:
        tor.add_rule(f"cookie=0xb1a4000000000001,{text},actions=drop")
    before = [rule for rule in tor.rules() if "cookie=0xb1a5" not in rule]
    assert len(before) == len(foreign) + 1
    process.confirm(tor.datapath, change(9, 1, add=[forward(1, SENDER, "239.77.0.8", LIGHT)]))
    process.confirm(tor.datapath, change(10, 1, remove=[forward(1, SENDER, "239.77.0.8", LIGHT)]))
    process.confirm(tor.datapath, change(9, 2, remove=[forward(1, SENDER, "239.77.0.8", LIGHT)]))
    remaining = [rule for rule in tor.rules() if "cookie=0xb1a5" not in rule]
    assert remaining == [rule for rule in before if "239.77.0.8" not in rule]


def test_a_tor_that_refuses_its_guards_is_not_up(framework: str, tmp_path: Path) -> None:
    datapath = new_datapath()
    with controller(framework, tmp_path, {datapath: [LIGHT]}, settings={"table": 254}) as process:
        tor = Bridge(process.port, datapath, 1)
        with bridges(tor):
            assert "it refused" in process.expect(event="DeviceDown", device=datapath)["reason"]
            process.expect_none(2.5, device=datapath)
            assert tor.our_rules() == []


def test_absent_and_unknown_datapaths_fail_at_once(framework: str, tmp_path: Path) -> None:
    with controller(framework, tmp_path, {1: [LIGHT]}) as process:
        for datapath in (1, 2):
            process.apply(datapath, change(7, datapath, add=[forward(1, SENDER, GROUP, LIGHT)]))
            failed = process.expect(event="StepFailed", device=datapath, step=datapath, timeout=1.0)
            assert failed["reason"] == f"ToR {datapath:016x} is not connected"
