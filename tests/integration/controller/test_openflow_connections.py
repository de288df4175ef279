"""Switches that disconnect, freeze, reconnect early or break the protocol: fake switches on loopback.

All tests run on os-ken; the one that depends on the framework runs on ryu too.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from blast_controller.core.model.commands import Forward
from blast_controller.openflow.rules import RuleSettings, forward_rule, guards
from tests.integration.controller.openflow_harness import (
    BARRIER_REPLY,
    BARRIER_REQUEST,
    ECHO_REQUEST,
    ERROR,
    FLOW_MOD,
    FLOW_STATS,
    FRAMEWORKS,
    GROUPS,
    HELLO,
    IS_SLAVE,
    MULTIPART_REPLY,
    MULTIPART_REQUEST,
    PACKET_IN,
    PORT_STATUS,
    STALE,
    ControllerProcess,
    FakeSwitch,
    change,
    controller,
    forward,
)
from tests.support.controller.openflow_entries import entry, raw_entry

ADD = 0
STEP_SECONDS = 2.0
"""Time in which a fake switch of these tests answers, however busy the machine is."""
STEP = change(7, 1, add=[forward(1, "10.0.0.1", "239.77.0.1", 9)])
NEXT_STEP = change(8, 1, add=STEP["add"])


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControllerProcess]:
    """Yield a controller that knows datapaths 1 to 999 and gives up a ToR after five unanswered probes, in 3 s."""
    known = {datapath: [9] for datapath in range(1, 1000)}
    settings = {"step_timeout": STEP_SECONDS, "echo_interval": 0.5, "echo_unanswered": 5, "generation": 9}
    with controller("os-ken", tmp_path_factory.mktemp("openflow"), known, **settings) as running:
        yield running


@pytest.fixture(scope="module")
def unprobing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControllerProcess]:
    """Yield a controller that sends no probe during a test."""
    known = {datapath: [9] for datapath in range(1, 1000)}
    settings = {"step_timeout": 60.0, "echo_interval": 60.0}
    with controller("os-ken", tmp_path_factory.mktemp("unprobing"), known, **settings) as running:
        yield running


_numbers = itertools.count(101)


@pytest.fixture
def tor() -> int:
    """Return the number of a datapath that no other test uses."""
    return next(_numbers)


def _up(process: ControllerProcess, switch: FakeSwitch) -> None:
    switch.prepare()
    process.expect(event="DeviceConnected", device=switch.datapath)


def _commands(mods: list[tuple[int, bytes]]) -> list[int]:
    return [struct.unpack_from("!QQBB", body)[3] for _, body in mods]


def _take_step(process: ControllerProcess, switch: FakeSwitch, step: dict[str, object] = STEP) -> None:
    process.apply(switch.datapath, step)
    _, barrier = switch.until_barrier()
    switch.send(BARRIER_REPLY, barrier)
    process.expect(event="StepConfirmed", device=switch.datapath, reservation=step["reservation"])


def test_closed_connection_reports_device_down_and_fails_its_steps(process: ControllerProcess, tor: int) -> None:
    with FakeSwitch(process.port, tor) as switch:
        _up(process, switch)
        process.apply(tor, STEP)
        switch.until_barrier()
    process.expect(event="DeviceDisconnected", device=tor)
    assert "was closed" in process.expect(event="StepFailed", device=tor, reservation=7)["reason"]


def test_frozen_switch_fails_steps_at_their_timeout_and_is_down_after_the_probe(
    process: ControllerProcess, tor: int
) -> None:
    with FakeSwitch(process.port, tor, answers_echo=False) as switch:
        _up(process, switch)
        process.apply(tor, STEP)
        failed = process.expect(event="StepFailed", device=tor, reservation=7)
        assert f"did not confirm within {STEP_SECONDS:g} s" in failed["reason"]
        process.expect(event="DeviceDisconnected", device=tor)
        process.expect_none(device=tor, reservation=7)


def test_late_barrier_reply_changes_nothing_and_the_next_step_works(process: ControllerProcess, tor: int) -> None:
    with FakeSwitch(process.port, tor) as switch:
        _up(process, switch)
        process.apply(tor, STEP)
        _, late = switch.until_barrier()
        process.expect(event="StepFailed", device=tor, reservation=7, step=1)
        process.apply(tor, NEXT_STEP)
        _, barrier = switch.until_barrier()
        switch.send(BARRIER_REPLY, late)
        switch.send(BARRIER_REPLY, barrier)
        process.expect(event="StepConfirmed", device=tor, reservation=8)
        process.expect_none(device=tor, reservation=7)


def test_early_reconnect_replaces_silent_connection(process: ControllerProcess, tor: int) -> None:
    with FakeSwitch(process.port, tor) as old:
        assert _commands(old.prepare()) == [ADD, ADD, ADD]
        process.expect(event="DeviceConnected", device=tor)
        process.apply(tor, STEP)
        old.until_barrier()
        with FakeSwitch(process.port, tor) as new:
            # It waits until the first one has been silent. Rules of the same run are kept.
            assert _commands(new.prepare()) == [ADD, ADD, ADD]
            process.expect(event="DeviceDisconnected", device=tor)
            process.expect(event="StepFailed", device=tor, reservation=7)
            process.expect(event="DeviceConnected", device=tor)
            old.until_closed()
            _take_step(process, new, NEXT_STEP)
            process.expect_none(event="DeviceDisconnected", device=tor)


def test_second_connection_does_not_take_over_tor(unprobing: ControllerProcess, tor: int) -> None:
    """Otherwise any client that can connect could take any ToR over by sending its datapath number."""
    with (
        FakeSwitch(unprobing.port, tor) as first,
        FakeSwitch(unprobing.port, tor) as second,
        ThreadPoolExecutor(1) as pool,
    ):
        _up(unprobing, first)
        ended = pool.submit(second.until_closed)
        _, challenge = first.until_barrier()
        first.send(BARRIER_REPLY, challenge)
        ended.result()
        _take_step(unprobing, first)
        unprobing.expect_none(event="DeviceDisconnected", device=tor)


@pytest.mark.parametrize(("ignores", "missing"), [(5, "FEATURES_REPLY"), (18, "PORT_DESC")])
def test_stalled_handshake_is_closed_with_its_reason(ignores: int, missing: str, tmp_path: Path) -> None:
    """Echo replies do not extend the handshake. The features reply identifies the ToR."""
    with controller("os-ken", tmp_path, {1: [9]}, handshake_timeout=1.0) as own:
        with FakeSwitch(own.port, 1) as switch:
            _up(own, switch)
        assert own.expect(event="DeviceDisconnected", device=1)["reason"] == "its connection was closed"
        with FakeSwitch(own.port, 1, ignores=ignores) as switch:
            switch.until_closed()
        if missing == "PORT_DESC":
            assert f"it sent no {missing} within 1 s" in own.expect(event="DeviceDisconnected", device=1)["reason"]
        assert f"it sent no {missing} within 1 s" in own.logged()[-1]
        with FakeSwitch(own.port, 1) as switch:
            _up(own, switch)


NONSENSE = [
    b"GET / HTTP/1.1\r\n\r\n",
    b"\x04\x00\x00\x00" * 4,  # length 0
    b"\xff" * 64,  # an unknown version
    b"\x04\x06\x00\x0a\x00\x00\x00\x01\x00\x00",  # features cut short
    b"",
]
UNREADABLE = [
    (99, b"\0" * 8),  # an unknown type
    (MULTIPART_REPLY, b"\x7f\xff\0\0\0\0\0\0"),  # an unknown statistic
    (MULTIPART_REPLY, struct.pack("!HH4xB", FLOW_STATS, 0, 1)),
    (PORT_STATUS, b"\0" * 9),
    # The framework's own parsers would never end with these: a group and an element of length 0.
    (MULTIPART_REPLY, struct.pack("!HH4x", 7, 0) + bytes(32)),
    (HELLO, bytes(4)),
]
CUT_MATCH = struct.pack("!IHBBQ", 0, 0, 0, 0, 0) + struct.pack("!HHI", 1, 60, 0x80000004)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_framework_survives_undecodable_messages(framework: str, tmp_path: Path) -> None:
    with (
        controller(framework, tmp_path, {1: [9], 2: [9]}, step_timeout=60.0) as own,
        FakeSwitch(own.port, 1) as switch,
    ):
        _up(own, switch)
        for nonsense in NONSENSE:
            with FakeSwitch(own.port, 2) as bad:
                bad.stream.sendall(nonsense)
        before = len(own.logged())
        for kind, body in UNREADABLE:
            switch.send(kind, 5, body)
        switch.expect_handled()
        lines = own.logged()[before:]
        unreadable = [line for line in lines if "undecodable message" in line]
        assert [f"type {kind}" in line for line, (kind, _) in zip(unreadable, UNREADABLE, strict=True)] == [True] * 6
        own.apply(1, STEP, change(8, 1, add=[forward(2, "10.0.0.1", "239.77.0.1", 9)]))
        mods, barrier = switch.until_barrier()
        assert _commands(mods) == [ADD, ADD]
        experimenter = struct.pack("!HHI", 0xFFFF, 3, 0x2320)
        switch.send(ERROR, mods[1][0], experimenter + mods[1][1][:56])
        switch.send(BARRIER_REPLY, barrier)
        assert "OFPET_EXPERIMENTER" in own.expect(event="StepFailed", device=1, reservation=8)["reason"]
        assert own.expect(event="StepConfirmed", device=1, reservation=7)["elapsed"] > 0
        own.expect_none(device=1, reservation=8)
        switch.send(PACKET_IN, 5, CUT_MATCH)
        assert own.expect(event="DeviceDisconnected", device=1)["reason"] == "its connection was closed"
        assert "does not speak OpenFlow 1.3" in own.logged()[-1]


def test_inconsistent_flow_entry_closes_only_its_connection(process: ControllerProcess, tor: int) -> None:
    sound = raw_entry(0, 1, 0xB1A5 << 48, b"\0\1\0\4", b"")
    spoilt = sound[:50] + b"\xff\xff" + sound[52:]
    with FakeSwitch(process.port, tor, rules=[spoilt]) as switch:
        switch.until_closed()
        assert "protocol violation" in process.expect(event="DeviceDisconnected", device=tor)["reason"]
    with FakeSwitch(process.port, tor) as switch:
        _up(process, switch)


def test_multipart_rules_are_joined_and_correct_tor_unchanged(process: ControllerProcess, tor: int) -> None:
    settings = RuleSettings(epoch=77)
    right = guards(settings, [9], IPv4Network(GROUPS))
    forwards = {(n, Forward(1, f"10.0.{n >> 8}.{n & 255}", "239.77.0.1", (9,))) for n in range(1, 1001)}
    rules = [*right, *(forward_rule(settings, reservation, found) for reservation, found in forwards)]
    with FakeSwitch(process.port, tor, rules=[entry(rule) for rule in rules], foreign=5) as switch:
        switch.next((MULTIPART_REQUEST,))
        switch.next((MULTIPART_REQUEST,))
        kind, *_ = switch.next((FLOW_MOD, BARRIER_REQUEST, ECHO_REQUEST))
        assert kind == ECHO_REQUEST, "nothing was written"
        up = process.expect(event="DeviceConnected", device=tor)
        assert {(r, Forward(**{**f, "outputs": tuple(f["outputs"])})) for r, f in up["rules"]} == forwards
        process.ask(look=tor)
        switch.next((MULTIPART_REQUEST,))
        switch.next((MULTIPART_REQUEST,))
        assert process.expect(event="TableObserved", datapath=tor)["foreign"] == 5


def test_unknown_datapath_is_never_written_to(process: ControllerProcess) -> None:
    with FakeSwitch(process.port, 1000) as switch:
        for _ in range(2):
            kind, _, _ = switch.next((FLOW_MOD, BARRIER_REQUEST, ECHO_REQUEST))
            assert kind == ECHO_REQUEST
        process.expect_none(device=1000)


def test_switch_that_refuses_its_guards_is_not_up(process: ControllerProcess, tor: int) -> None:
    with FakeSwitch(process.port, tor) as switch:
        mods, barrier = switch.until_barrier()
        switch.send(ERROR, mods[0][0], struct.pack("!HH", 5, 2) + mods[0][1][:56])
        switch.send(BARRIER_REPLY, barrier)
        assert "it refused" in process.expect(event="DeviceDisconnected", device=tor)["reason"]
        process.expect_none(event="DeviceConnected", device=tor)


def test_refused_role_closes_the_connection_before_anything_is_written(process: ControllerProcess, tor: int) -> None:
    with FakeSwitch(process.port, tor, role_error=STALE) as switch:
        with pytest.raises((EOFError, ConnectionError)):
            switch.until_barrier()
        assert switch.generation == 9
        assert "generation 9" in process.expect(event="DeviceDisconnected", device=tor)["reason"]


def test_write_refused_to_a_slave_fails_its_step_and_ends_the_session(process: ControllerProcess, tor: int) -> None:
    """A switch that does not notify a controller of a new master, as in plain OpenFlow 1.3."""
    with FakeSwitch(process.port, tor) as switch:
        _up(process, switch)
        process.apply(tor, STEP)
        ((xid, body),), _ = switch.until_barrier()
        switch.send(ERROR, xid, IS_SLAVE + body[:64])
        failed = process.expect(event="StepFailed", device=tor, reservation=7)
        assert "another controller is the master of this ToR" in failed["reason"]
        process.expect(event="DeviceDisconnected", device=tor)
        switch.until_closed()


def test_many_switches_that_connect_at_once_are_all_accepted(unprobing: ControllerProcess) -> None:
    datapaths = range(501, 601)
    with ExitStack() as stack:
        switches = [stack.enter_context(FakeSwitch(unprobing.port, datapath)) for datapath in datapaths]
        # Beside each other, as switches are: the controller gives up one that answers nothing for 10 s.
        with ThreadPoolExecutor(len(switches)) as pool:
            list(pool.map(FakeSwitch.prepare, switches))
        for datapath in datapaths:
            unprobing.expect(event="DeviceConnected", device=datapath)


def test_invalid_command_line_is_answered_with_reason(process: ControllerProcess) -> None:
    for line in ("{}", "nonsense", '{"datapath": 1, "changes": [{"reservation": 7}]}'):
        process.write(line)
        assert process.expect(event="NotACommand")["reason"]
