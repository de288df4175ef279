"""Switches that vanish, freeze, come back early or talk nonsense; on os-ken and on ryu, against fake switches."""

from __future__ import annotations

import itertools
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from blast_controller.core.model.commands import Forward
from blast_controller.openflow.rules import RuleSettings, forward_rule, guards
from tests.integration.openflow_harness import (
    BARRIER_REPLY,
    BARRIER_REQUEST,
    ECHO_REQUEST,
    ERROR,
    FLOW_MOD,
    FLOW_STATS,
    FRAMEWORKS,
    GROUPS,
    HELLO,
    MULTIPART_REPLY,
    MULTIPART_REQUEST,
    PACKET_IN,
    PORT_STATUS,
    ControllerProcess,
    FakeSwitch,
    change,
    controller,
    forward,
)
from tests.support.openflow_entries import entry, raw_entry

pytestmark = [pytest.mark.parametrize("framework", FRAMEWORKS, scope="module")]

ADD = 0
STEP_SECONDS = 2.0
"""In which a fake switch of these tests answers, however busy the machine is."""
STEP = change(7, 1, add=[forward(1, "10.0.0.1", "239.77.0.1", 9)])


@pytest.fixture(scope="module")
def process(framework: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControllerProcess]:
    """Knows datapaths 1 to 999; probes every 0.5 s, so that five unanswered ones are 3 s."""
    known = {datapath: [9] for datapath in range(1, 1000)}
    folder = tmp_path_factory.mktemp("openflow")
    with controller(
        framework, folder, known, step_timeout=STEP_SECONDS, echo_interval=0.5, echo_unanswered=5
    ) as running:
        yield running


_numbers = itertools.count(101)


@pytest.fixture
def tor() -> int:
    """A datapath that no other test uses."""
    return next(_numbers)


def _commands(mods: list[tuple[int, bytes]]) -> list[int]:
    return [struct.unpack_from("!QQBB", body)[3] for _, body in mods]


def test_a_closed_connection_is_down_at_once_and_its_steps_fail(process: ControllerProcess, tor: int) -> None:
    with FakeSwitch(process.port, tor) as switch:
        switch.prepare()
        process.expect(event="DeviceUp", device=tor)
        process.apply(tor, STEP)
        switch.until_barrier()
    process.expect(event="DeviceDown", device=tor)
    assert "was lost" in process.expect(event="StepFailed", device=tor, reservation=7)["reason"]
    process.expect_none(1.2 * STEP_SECONDS, device=tor, reservation=7)


def test_a_frozen_switch_fails_steps_in_time_and_is_down_after_the_probe(process: ControllerProcess, tor: int) -> None:
    with FakeSwitch(process.port, tor, answers_echo=False) as switch:
        switch.prepare()
        process.expect(event="DeviceUp", device=tor)
        asked = time.monotonic()
        process.apply(tor, STEP)
        assert (
            f"did not confirm within {STEP_SECONDS:g} s"
            in process.expect(event="StepFailed", device=tor, reservation=7)["reason"]
        )
        assert time.monotonic() - asked > 0.9 * STEP_SECONDS
        process.expect(event="DeviceDown", device=tor)
        process.expect_none(0.1, device=tor, reservation=7)


def test_a_late_barrier_reply_changes_nothing_and_the_next_step_works(process: ControllerProcess, tor: int) -> None:
    with FakeSwitch(process.port, tor) as switch:
        switch.prepare()
        process.expect(event="DeviceUp", device=tor)
        process.apply(tor, STEP)
        _, late = switch.until_barrier()
        process.expect(event="StepFailed", device=tor, reservation=7, step=1)
        process.apply(tor, change(8, 1, add=STEP["add"]))
        _, barrier = switch.until_barrier()
        switch.send(BARRIER_REPLY, late)
        switch.send(BARRIER_REPLY, barrier)
        process.expect(event="StepConfirmed", device=tor, reservation=8)
        process.expect_none(0.1, device=tor, reservation=7)


def test_errors_fail_the_step_whose_rule_they_name(process: ControllerProcess, tor: int) -> None:
    with FakeSwitch(process.port, tor) as switch:
        switch.prepare()
        process.expect(event="DeviceUp", device=tor)
        process.apply(tor, STEP, change(8, 1, add=[forward(2, "10.0.0.1", "239.77.0.1", 9)]))
        mods, barrier = switch.until_barrier()
        assert _commands(mods) == [ADD, ADD]
        experimenter = struct.pack("!HHI", 0xFFFF, 3, 0x2320)
        switch.send(ERROR, mods[1][0], experimenter + mods[1][1][:56])
        switch.send(BARRIER_REPLY, barrier)
        assert "OFPET_EXPERIMENTER" in process.expect(event="StepFailed", device=tor, reservation=8)["reason"]
        confirmed = process.expect(event="StepConfirmed", device=tor, reservation=7)
        assert 0 < confirmed["elapsed"] < STEP_SECONDS
        process.expect_none(0.1, device=tor, reservation=8)


def test_a_switch_that_comes_back_before_its_old_connection_is_dead(process: ControllerProcess, tor: int) -> None:
    with FakeSwitch(process.port, tor) as old:
        assert _commands(old.prepare()) == [ADD, ADD, ADD]
        process.expect(event="DeviceUp", device=tor)
        process.apply(tor, STEP)
        old.until_barrier()
        with FakeSwitch(process.port, tor) as new:
            # It waits until the first one has been silent. In the same run nothing is wiped: what the switch kept goes
            # on working.
            assert _commands(new.prepare()) == [ADD, ADD, ADD]
            process.expect(event="DeviceDown", device=tor)
            process.expect(event="StepFailed", device=tor, reservation=7)
            process.expect(event="DeviceUp", device=tor)
            with pytest.raises((EOFError, ConnectionError)):
                while True:
                    old.until_barrier()
            process.expect_none(0.3, event="DeviceDown", device=tor)
            process.apply(tor, change(8, 1, add=STEP["add"]))
            _, barrier = new.until_barrier()
            new.send(BARRIER_REPLY, barrier)
            process.expect(event="StepConfirmed", device=tor, reservation=8)


def test_a_second_connection_does_not_take_a_tor_over(framework: str, tmp_path: Path) -> None:
    """Whoever can connect could otherwise take any ToR over by saying its number."""
    settings = {"step_timeout": 60.0, "echo_interval": 60.0}
    with (
        controller(framework, tmp_path, {1: [9]}, **settings) as own,
        FakeSwitch(own.port, 1) as first,
        FakeSwitch(own.port, 1) as second,
        ThreadPoolExecutor(1) as beside,
    ):
        first.prepare()
        own.expect(event="DeviceUp", device=1)
        ended = beside.submit(second.until_barrier)
        _, challenge = first.until_barrier()
        first.send(BARRIER_REPLY, challenge)
        with pytest.raises((EOFError, ConnectionError)):
            ended.result()
        own.apply(1, STEP)
        _, barrier = first.until_barrier()
        first.send(BARRIER_REPLY, barrier)
        own.expect(event="StepConfirmed", device=1, reservation=7)
        own.expect_none(0.0, event="DeviceDown", device=1)


NONSENSE = {
    "another protocol": b"GET / HTTP/1.1\r\n\r\n",
    "length 0": b"\x04\x00\x00\x00" * 4,
    "unknown version": b"\xff" * 64,
    "features cut short": b"\x04\x06\x00\x0a\x00\x00\x00\x01\x00\x00",
    "nothing": b"",
}


@pytest.mark.parametrize("nonsense", NONSENSE.values(), ids=NONSENSE.keys())
def test_nonsense_harms_nobody_else(process: ControllerProcess, tor: int, nonsense: bytes) -> None:
    with FakeSwitch(process.port, tor) as good, FakeSwitch(process.port, 1000) as bad:
        good.prepare()
        process.expect(event="DeviceUp", device=tor)
        bad.stream.sendall(nonsense)
        bad.stream.close()
        process.apply(tor, STEP)
        _, barrier = good.until_barrier()
        good.send(BARRIER_REPLY, barrier)
        process.expect(event="StepConfirmed", device=tor, reservation=7)


UNREADABLE = {
    "an unknown type": (99, b"\0" * 8),
    "an unknown statistic": (MULTIPART_REPLY, b"\x7f\xff\0\0\0\0\0\0"),
    "flow statistics cut short": (MULTIPART_REPLY, struct.pack("!HH4xB", FLOW_STATS, 0, 1)),
    "a port cut short": (PORT_STATUS, b"\0" * 9),
    # The framework's own parsers would never end with these.
    "groups of length 0": (MULTIPART_REPLY, struct.pack("!HH4x", 7, 0) + bytes(32)),
    "an element of length 0": (HELLO, bytes(4)),
}


@pytest.mark.parametrize(("kind", "body"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_message_that_cannot_be_read_is_one_line_and_no_more(
    process: ControllerProcess, tor: int, kind: int, body: bytes
) -> None:
    with FakeSwitch(process.port, tor) as switch:
        switch.prepare()
        process.expect(event="DeviceUp", device=tor)
        before = len(process.logged())
        switch.send(kind, 5, body)
        process.apply(tor, STEP)
        _, barrier = switch.until_barrier()
        switch.send(BARRIER_REPLY, barrier)
        process.expect(event="StepConfirmed", device=tor, reservation=7)
        lines = process.logged()[before:]
        assert len(lines) == 1 and f"type {kind}" in lines[0] and "cannot be read" in lines[0], lines


def test_a_frame_whose_match_is_cut_short_ends_its_connection(process: ControllerProcess, tor: int) -> None:
    with FakeSwitch(process.port, tor) as switch:
        switch.prepare()
        process.expect(event="DeviceUp", device=tor)
        before = len(process.logged())
        switch.send(PACKET_IN, 5, struct.pack("!IHBBQ", 0, 0, 0, 0, 0) + struct.pack("!HHI", 1, 60, 0x80000004))
        assert process.expect(event="DeviceDown", device=tor)["reason"] == "its connection was closed"
        lines = process.logged()[before:]
        assert len(lines) == 1 and "does not speak OpenFlow 1.3" in lines[0], lines


def test_an_entry_that_contradicts_itself_ends_only_its_connection(process: ControllerProcess, tor: int) -> None:
    sound = raw_entry(0, 1, 0xB1A5 << 48, b"\0\1\0\4", b"")
    spoilt = sound[:50] + b"\xff\xff" + sound[52:]
    with FakeSwitch(process.port, tor, rules=[spoilt]) as switch:
        with pytest.raises((EOFError, ConnectionError)):
            switch.until_barrier()
        assert "does not keep to the protocol" in process.expect(event="DeviceDown", device=tor)["reason"]
    with FakeSwitch(process.port, tor) as switch:
        switch.prepare()
        process.expect(event="DeviceUp", device=tor)


def test_rules_told_in_many_parts_are_joined_and_a_tor_that_is_right_is_not_written_to(
    process: ControllerProcess, tor: int
) -> None:
    settings = RuleSettings(epoch=77)
    right = guards(settings, [9], IPv4Network(GROUPS))
    forwards = {(n, Forward(1, f"10.0.{n >> 8}.{n & 255}", "239.77.0.1", (9,))) for n in range(1, 1001)}
    rules = [*right, *(forward_rule(settings, reservation, found) for reservation, found in forwards)]
    with FakeSwitch(process.port, tor, rules=[entry(rule) for rule in rules], foreign=5) as switch:
        switch.next((MULTIPART_REQUEST,))
        switch.next((MULTIPART_REQUEST,))
        kind, *_ = switch.next((FLOW_MOD, BARRIER_REQUEST, ECHO_REQUEST))
        assert kind == ECHO_REQUEST, "nothing was written"
        up = process.expect(event="DeviceUp", device=tor)
        assert {(r, Forward(**{**f, "outputs": tuple(f["outputs"])})) for r, f in up["rules"]} == forwards
        process.ask(look=tor)
        switch.next((MULTIPART_REQUEST,))
        switch.next((MULTIPART_REQUEST,))
        assert process.expect(event="TableObserved", datapath=tor)["foreign"] == 5


def test_an_unknown_datapath_is_never_written_to(process: ControllerProcess) -> None:
    with FakeSwitch(process.port, 1000) as switch:
        for _ in range(4):
            kind, _, _ = switch.next((FLOW_MOD, BARRIER_REQUEST, ECHO_REQUEST))
            assert kind == ECHO_REQUEST
        process.expect_none(0.0, device=1000)


def test_many_switches_that_connect_at_once_are_all_accepted(framework: str, tmp_path: Path) -> None:
    datapaths = range(1, 101)
    with controller(framework, tmp_path, {datapath: [9] for datapath in datapaths}) as own, ExitStack() as stack:
        switches = [stack.enter_context(FakeSwitch(own.port, datapath)) for datapath in datapaths]
        for switch in switches:
            switch.prepare()
        for datapath in datapaths:
            own.expect(event="DeviceUp", device=datapath)


def test_a_line_that_is_no_command_is_answered(process: ControllerProcess) -> None:
    for line in ("{}", "nonsense", '{"datapath": 1, "changes": [{"reservation": 7}]}'):
        process.write(line)
        assert process.expect(event="NotACommand")["reason"]
