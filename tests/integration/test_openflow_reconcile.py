"""What a ToR holds when the controller comes: kept where right, mended where wrong; real bridges, both frameworks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.integration.openflow_harness import (
    FRAMEWORKS,
    Bridge,
    ControllerProcess,
    Event,
    PrivateSwitch,
    bridges,
    change,
    forward,
    new_datapath,
)
from tests.support.waiting import eventually

pytestmark = [pytest.mark.lab, pytest.mark.parametrize("framework", FRAMEWORKS)]

SENDER, GROUP, OTHER = "10.0.0.1", "239.77.0.1", "239.77.0.2"
LIGHT, LIGHT2 = 5, 6
TREE = forward(1, SENDER, GROUP, 2, LIGHT)
SECOND_TREE = forward(LIGHT2, SENDER, OTHER, 3)
MAGIC = 0xB1A5 << 48
GUARDS = 5
FOREIGN = ["cookie=0xb1a4000000000001,priority=7,actions=drop", "cookie=0x9,table=9,priority=7,actions=drop"]

Run = Callable[..., ControllerProcess]


@pytest.fixture
def run(framework: str, tmp_path: Path) -> Iterator[Run]:
    """Starts runs of the controller, one after the other on the same port."""
    with ExitStack() as stack:

        def start(datapath: int, listen: int = 0, **content: Any) -> ControllerProcess:
            config = tmp_path / f"{time.monotonic_ns()}.json"
            known = {"optical_ports": {datapath: [LIGHT, LIGHT2]}, **content}
            process = ControllerProcess(framework, config, known, f"127.0.0.1:{listen}")
            stack.callback(lambda: process.process.stdin.closed or process.close())
            return process

        yield start


def _up(process: ControllerProcess, datapath: int) -> list[tuple[int, Any]]:
    return _held(process.expect(event="DeviceUp", device=datapath))


def _held(event: Event) -> list[tuple[int, Any]]:
    """The forwards of a DeviceUp or a TableObserved, with their reservations, in order."""
    return sorted((reservation, found) for reservation, found in event["rules"])


def _as_told(*held: tuple[int, dict[str, Any]]) -> list[tuple[int, Any]]:
    return [(reservation, {**found, "outputs": list(found["outputs"])}) for reservation, found in held]


def _observed(process: ControllerProcess, datapath: int, how: str = "read") -> Event:
    process.ask(**{how: datapath})
    return process.expect(event="TableObserved", datapath=datapath)


def _with_rules(run: Run, stack: ExitStack) -> tuple[ControllerProcess, Bridge]:
    """A ToR with two trees on it, written by a run of epoch 2, and two foreign rules beside that of the bench."""
    process = run(datapath := new_datapath(), settings={"epoch": 2}, generation=2)
    tor = Bridge(process.port, datapath, 6)
    stack.enter_context(bridges(tor))
    assert _up(process, datapath) == []
    process.confirm(datapath, change(7, 1, add=[TREE]), change(8, 1, add=[SECOND_TREE]))
    tor.add_rules(FOREIGN)
    return process, tor


def test_a_restart_touches_no_rule_and_loses_no_packet(run: Run) -> None:
    with ExitStack() as stack:
        first, tor = _with_rules(run, stack)
        tor.settle(1, SENDER, GROUP, {2, LIGHT})
        before, seen = tor.ages(), time.monotonic()
        assert first.close() == 0
        assert tor.reach(1, SENDER, GROUP) == {2, LIGHT}
        second = run(tor.datapath, first.port, settings={"epoch": 3}, generation=3)
        assert _up(second, tor.datapath) == _as_told((7, TREE), (8, SECOND_TREE))
        assert tor.reach(1, SENDER, GROUP) == {2, LIGHT}
        # Statistics lag behind the packets a little.
        tree = next(rule for rule in before if GROUP in rule and "/16" not in rule)
        assert eventually(lambda: tor.ages()[tree][1] >= before[tree][1] + 2)
        after, elapsed = tor.ages(), time.monotonic() - seen
        assert after.keys() == before.keys()
        assert len(after) == GUARDS + 2 + len(FOREIGN) + 1
        for rule, (age, packets) in before.items():
            assert after[rule][0] >= age + elapsed - 0.5, "the rule was written again"
            assert after[rule][1] >= packets
        second.confirm(tor.datapath, change(7, 2, remove=[TREE]))
        assert _held(_observed(second, tor.datapath)) == _as_told((8, SECOND_TREE))


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
MARK = "actions=set_field:46->ip_dscp"
STALE = _rule(1, 99, f"priority=40000,ip,in_port=3,nw_src=10.0.0.3,nw_dst=239.77.0.9,{MARK},output:{LIGHT}")
STALE_FORWARD = forward(3, "10.0.0.3", "239.77.0.9", LIGHT)


def _spoil(tor: Bridge) -> None:
    tor.add_rules([*SPOILT, STALE])
    tor.delete_rules(f"cookie={MAGIC | 2 << 32:#x}/-1,in_port={LIGHT2}")
    tor.delete_rules("cookie=0xb1a5000200000008/-1")


def _unspoilt(rules: Sequence[str]) -> list[str]:
    """Without the epoch, which is no difference."""
    return sorted(rule.replace("0xb1a50002", "0xb1a5").replace("0xb1a50003", "0xb1a5") for rule in rules)


def test_stale_missing_and_wrong_rules_are_mended_exactly(run: Run) -> None:
    with ExitStack() as stack:
        first, tor = _with_rules(run, stack)
        right = tor.rules()
        assert first.close() == 0
        _spoil(tor)
        before = tor.ages()
        second = run(tor.datapath, first.port, settings={"epoch": 3}, generation=3)
        # Stale forwards are the core's to judge: they are told, and so is by its absence what is missing.
        assert _up(second, tor.datapath) == _as_told((7, TREE), (99, STALE_FORWARD))
        second.confirm(tor.datapath, change(99, 1, remove=[STALE_FORWARD]), change(8, 1, add=[SECOND_TREE]))
        assert _unspoilt(tor.rules()) == _unspoilt(right)
        kept = [rule for rule in before if rule in tor.ages()]
        assert {rule for rule in kept if tor.ages()[rule][0] < before[rule][0]} == set(), "right rules were not touched"
        assert len(kept) == len(right) - 4  # all but three guards and one forward
        assert second.close() == 0


def test_what_goes_wrong_while_connected_is_seen_and_mended_by_a_reading(run: Run) -> None:
    with ExitStack() as stack:
        process, tor = _with_rules(run, stack)
        right = tor.rules()
        observed = _observed(process, tor.datapath)
        assert (_held(observed), observed["foreign"]) == (_as_told((7, TREE), (8, SECOND_TREE)), len(FOREIGN) + 1)
        _spoil(tor)
        spoilt = tor.rules()
        observed = _observed(process, tor.datapath, "look")
        assert _held(observed) == _as_told((7, TREE), (99, STALE_FORWARD))
        assert tor.rules() == spoilt, "a look changes nothing"
        assert _held(_observed(process, tor.datapath)) == _as_told((7, TREE), (99, STALE_FORWARD))
        process.confirm(tor.datapath, change(99, 1, remove=[STALE_FORWARD]), change(8, 2, add=[SECOND_TREE]))
        assert tor.rules() == right


def test_an_emptied_table_has_its_guards_back_after_a_reading(run: Run) -> None:
    with ExitStack() as stack:
        process, tor = _with_rules(run, stack)
        tor.delete_rules("cookie=0/0")
        observed = _observed(process, tor.datapath)
        assert (observed["rules"], observed["foreign"]) == ([], 0)
        assert len(tor.rules()) == len(tor.our_rules()) == GUARDS


def test_a_private_switch_is_restarted_with_stale_missing_and_foreign_rules(run: Run) -> None:
    process = run(datapath := new_datapath(), settings={"epoch": 2}, generation=2)
    with PrivateSwitch() as switch:
        tor = Bridge(process.port, datapath, 6, rundir=switch.rundir)
        with bridges(tor):
            assert _up(process, datapath) == []
            process.confirm(datapath, change(7, 1, add=[TREE]), change(8, 1, add=[SECOND_TREE]))
            before = tor.our_rules()
            switch.stop()
            process.expect(event="DeviceDown", device=datapath)
            assert process.close() == 0
            switch.start()
            assert eventually((switch.rundir / f"{tor.name}.mgmt").exists)
            assert tor.rules() == []
            tree = f"priority=40000,ip,in_port=1,nw_src={SENDER},nw_dst={GROUP},{MARK},output:2,output:{LIGHT}"
            tor.add_rules([_rule(2, 7, tree), STALE, *SPOILT, *FOREIGN])
            again = run(datapath, process.port, settings={"epoch": 3}, generation=3)
            assert _up(again, datapath) == _as_told((7, TREE), (99, STALE_FORWARD))
            again.confirm(datapath, change(99, 1, remove=[STALE_FORWARD]), change(8, 1, add=[SECOND_TREE]))
            assert _unspoilt(tor.our_rules()) == _unspoilt(before)
            assert len(tor.rules()) == len(before) + len(FOREIGN)
            observed = _observed(again, datapath)
            assert (_held(observed), observed["foreign"]) == (_as_told((7, TREE), (8, SECOND_TREE)), len(FOREIGN))
            assert again.close() == 0


def test_ten_thousand_rules_are_read_and_left_alone(run: Run) -> None:
    count = 10_000
    with ExitStack() as stack:
        process, tor = _with_rules(run, stack)
        tor.add_rules(
            f"cookie={MAGIC | 1 << 32 | n:#x},priority=40000,ip,in_port=1,nw_src=10.{n >> 8}.{n & 255}.1,"
            f"nw_dst=239.77.0.3,actions=set_field:46->ip_dscp,output:{LIGHT}"
            for n in range(100, 100 + count)
        )
        observed = _observed(process, tor.datapath)
        assert len(observed["rules"]) == count + 2
        assert len({reservation for reservation, _ in observed["rules"]}) == count + 2
        assert process.close() == 0
        again = run(tor.datapath, process.port, generation=3)
        assert len(_up(again, tor.datapath)) == count + 2
        assert len(tor.our_rules()) == count + 2 + GUARDS


def test_a_full_table_fails_the_step_and_what_was_there_goes_on(run: Run) -> None:
    with ExitStack() as stack:
        process, tor = _with_rules(run, stack)
        before = tor.rules()
        tor.limit_rules(len([rule for rule in before if "table=9" not in rule]))
        third = forward(2, SENDER, GROUP, 3)
        process.apply(tor.datapath, change(9, 1, add=[third]), change(7, 2, remove=[TREE], add=[third]))
        for reservation, step in ((9, 1), (7, 2)):
            failed = process.expect(event="StepFailed", reservation=reservation, step=step)
            assert "OFPFMFC_TABLE_FULL" in failed["reason"]
        assert tor.rules() == before, "the old rule goes on because the new one was refused"
        process.confirm(tor.datapath, change(8, 2, remove=[SECOND_TREE]), change(9, 2, add=[third]))
        assert _held(_observed(process, tor.datapath)) == _as_told((7, TREE), (9, third))
