"""Two controllers and one ToR, probe frames over a fibre, and ports that go dark; on real bridges, both frameworks."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.integration.openflow_harness import (
    ERROR,
    FRAMEWORKS,
    IS_SLAVE,
    ROLE_REQUEST,
    STALE,
    Bridge,
    ControllerProcess,
    FakeSwitch,
    bridges,
    change,
    controller,
    forward,
    new_datapath,
)

pytestmark = [pytest.mark.lab, pytest.mark.parametrize("framework", FRAMEWORKS)]

LIGHT, LIGHT2 = 5, 6
STEP = change(7, 1, add=[forward(1, "10.0.0.1", "239.77.0.1", LIGHT)])


@contextmanager
def _rivals(framework: str, folder: Path, *generations: int | None) -> Iterator[tuple[Bridge, list[ControllerProcess]]]:
    """A ToR of the first controller, and further controllers that it does not know yet."""
    datapath = new_datapath()
    with ExitStack() as stack:
        processes = []
        for number, generation in enumerate(generations):
            (own := folder / str(number)).mkdir()
            content = {"generation": generation, "settings": {"epoch": generation or 0}}
            processes.append(stack.enter_context(controller(framework, own, {datapath: [LIGHT, LIGHT2]}, **content)))
        tor = Bridge(processes[0].port, datapath, 6)
        stack.enter_context(bridges(tor))
        yield tor, processes


def test_a_controller_of_a_lower_generation_is_refused_and_writes_nothing(framework: str, tmp_path: Path) -> None:
    with _rivals(framework, tmp_path, 5, 4) as (tor, (master, late)):
        master.expect(event="DeviceUp", device=tor.datapath)
        master.confirm(tor.datapath, STEP)
        rules = tor.rules()
        tor.controlled_by(master.port, late.port)
        refused = late.expect(event="DeviceDown", device=tor.datapath)
        assert refused["reason"].startswith("another controller is the master of this ToR")
        late.apply(tor.datapath, STEP)
        assert "is not connected" in late.expect(event="StepFailed", reservation=7)["reason"]
        late.expect_none(2.5, device=tor.datapath)
        assert not [line for line in late.logged() if "WARNING" in line], "not a line for every time it comes back"
        assert tor.rules() == rules
        master.confirm(tor.datapath, change(7, 2, remove=STEP["add"]))
        master.expect_none(0.0, event="DeviceDown")


def test_a_controller_of_a_higher_generation_takes_over_and_the_first_notices(framework: str, tmp_path: Path) -> None:
    with _rivals(framework, tmp_path, 5, 6) as (tor, (first, second)):
        first.expect(event="DeviceUp", device=tor.datapath)
        first.confirm(tor.datapath, STEP)
        before = tor.ages()
        tor.controlled_by(first.port, second.port)
        up = second.expect(event="DeviceUp", device=tor.datapath)
        assert [reservation for reservation, _ in up["rules"]] == [7]
        down = first.expect(event="DeviceDown", device=tor.datapath)
        assert down["reason"] == "another controller is the master of this ToR"
        first.apply(tor.datapath, change(8, 1, add=STEP["add"]))
        first.expect(event="StepFailed", device=tor.datapath, reservation=8)
        first.expect_none(2.0, event="DeviceUp")
        assert tor.ages().keys() == before.keys()
        second.confirm(tor.datapath, change(7, 2, remove=STEP["add"]))
        second.expect_none(0.0, event="DeviceDown")


def test_a_standby_writes_nothing_until_it_leads_and_takes_over_without_a_new_connection(
    framework: str, tmp_path: Path
) -> None:
    with _rivals(framework, tmp_path, 5, None) as (tor, (master, standby)):
        master.expect(event="DeviceUp", device=tor.datapath)
        master.confirm(tor.datapath, STEP)
        before = tor.ages()
        tor.controlled_by(master.port, standby.port)
        standby.apply(tor.datapath, change(8, 1, add=STEP["add"]))
        assert "is not connected" in standby.expect(event="StepFailed", reservation=8)["reason"]
        master.expect_none(1.0, event="DeviceDown")
        assert tor.ages().keys() == before.keys()
        standby.ask(lead=6, epoch=6)
        up = standby.expect(event="DeviceUp", device=tor.datapath)
        assert [reservation for reservation, _ in up["rules"]] == [7]
        assert master.expect(event="DeviceDown", device=tor.datapath)["reason"].startswith("another controller")
        assert tor.ages().keys() == before.keys(), "what was right was not touched"
        standby.confirm(tor.datapath, change(7, 2, remove=STEP["add"]))


def test_a_refused_role_hangs_up_before_anything_is_written(framework: str, tmp_path: Path) -> None:
    with (
        controller(framework, tmp_path, {1: [LIGHT]}, generation=9) as process,
        FakeSwitch(process.port, 1, role_error=STALE) as switch,
    ):
        with pytest.raises((EOFError, ConnectionError)):
            switch.until_barrier()
        assert switch.generation == 9
        assert "generation 9" in process.expect(event="DeviceDown", device=1)["reason"]


def test_a_slaves_write_fails_its_step_and_ends_the_session(framework: str, tmp_path: Path) -> None:
    """A switch that says nothing when it changes its master, as plain OpenFlow 1.3 has it."""
    with controller(framework, tmp_path, {1: [LIGHT]}) as process, FakeSwitch(process.port, 1) as switch:
        switch.prepare()
        process.expect(event="DeviceUp", device=1)
        process.apply(1, STEP)
        ((xid, body),), _ = switch.until_barrier()
        switch.send(ERROR, xid, IS_SLAVE + body[:64])
        failed = process.expect(event="StepFailed", device=1, reservation=7)
        assert "another controller is the master of this ToR" in failed["reason"]
        process.expect(event="DeviceDown", device=1)
        with pytest.raises((EOFError, ConnectionError)):
            switch.next((ROLE_REQUEST,))


def test_a_probe_frame_goes_through_a_fibre_and_is_seen_where_it_ends(framework: str, tmp_path: Path) -> None:
    """Port 5 of the one ToR and port 6 of the other are the ends of one fibre; the rest of their light is dark."""
    left, right = new_datapath(), new_datapath()
    known = {left: [LIGHT, LIGHT2], right: [LIGHT, LIGHT2]}
    with controller(framework, tmp_path, known) as process:
        sender, receiver = Bridge(process.port, left, 6), Bridge(process.port, right, 6)
        with bridges(sender, receiver), sender.fibre(LIGHT, receiver, LIGHT2):
            for tor in (sender, receiver):
                process.expect(event="DeviceUp", device=tor.datapath)
                tor.add_rule("cookie=0x51,priority=10,actions=output:1,output:2,output:3,output:4")
            process.ask(probe=left, port=LIGHT, payload="00ff c0ffee")
            seen = process.expect(event="ProbeSeen", datapath=right)
            assert (seen["port"], seen["payload"]) == (LIGHT2, "00ffc0ffee")
            process.ask(probe=left, port=LIGHT2, payload="01")
            process.ask(probe=left, port=999, payload="02")
            process.expect_none(0.5, event="ProbeSeen")
            # A probe that a host sends is a frame for the packet network like any other.
            sender.sockets[1].send(bytes.fromhex("02b1a500000202b1a500000188b5b1a50b0e000103").ljust(60, b"\0"))
            process.expect_none(0.5, event="ProbeSeen")
            process.confirm(left, STEP)


def test_ports_are_told_at_connection_and_when_they_change(framework: str, tmp_path: Path) -> None:
    datapath = new_datapath()
    with controller(framework, tmp_path, {datapath: [LIGHT, LIGHT2, 9]}) as process:
        tor = Bridge(process.port, datapath, 6)
        with bridges(tor):
            process.expect(event="DeviceUp", device=datapath)
            first = [process.expect(event="PortChanged", datapath=datapath) for _ in range(3)]
            assert sorted((port["port"], port["up"]) for port in first) == [(LIGHT, True), (LIGHT2, True), (9, False)]
            assert [port["reason"] for port in first if port["reason"]] == ["the ToR has no such port"]
            tor.cut(LIGHT)
            dark = process.expect(event="PortChanged", datapath=datapath, port=LIGHT)
            assert (dark["up"], dark["reason"]) == (False, "it has no link")
            tor.cut(LIGHT, "up")
            assert process.expect(event="PortChanged", datapath=datapath, port=LIGHT)["up"]
            subprocess.run(["ovs-vsctl", "del-port", tor.name, f"{tor.prefix}p{LIGHT2}"], check=True)
            gone = process.expect(event="PortChanged", datapath=datapath, port=LIGHT2)
            assert (gone["up"], gone["reason"]) == (False, "the ToR has no such port any more")
            tor.cut(1)
            process.expect_none(0.5, event="PortChanged", port=1)
