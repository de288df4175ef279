"""The demo's decisions: which groups it asks for, what it refuses, what its bars accept, and how it fails."""

import argparse
import io
import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from algorithms.splitter_tree import choose_splitters
from blast_api.ttypes import NotYet, Rejected
from blast_client.address import Address
from blast_client.calls import ControllerUnreachable
from blast_transport.errors import LightPathError
from mininet_topos import command as lab_command
from mininet_topos.demo import command
from mininet_topos.demo.groups import cold_groups, most_groups, widest_group
from mininet_topos.demo.results import Results, Transfer
from mininet_topos.demo.settings import LEAST_FILE, demo_plan
from mininet_topos.demo.stage import Stage
from mininet_topos.demo.transfers import check_light
from mininet_topos.errors import DemoError
from mininet_topos.plan import LabPlan


@pytest.fixture
def parse():
    parser = argparse.ArgumentParser(prog="blast")
    lab_command.register(parser.add_subparsers(required=True))
    return lambda *arguments: parser.parse_args(["lab", "demo", *arguments])


@pytest.fixture
def stage():
    return Stage(SimpleNamespace(plan=demo_plan(8)), None, Results("1:100"), io.StringIO(), "x")


@pytest.mark.parametrize("racks", [6, 8, 9, 12, 32])
def test_every_group_can_be_joined_by_the_splitters_and_none_comes_twice(racks):
    plan = demo_plan(racks)
    groups = cold_groups(plan, 101)
    assert len({(sender, frozenset(receivers)) for sender, receivers in groups}) == 101
    for sender, receivers in groups:
        assert sender not in receivers and len(set(receivers)) == len(receivers) >= 2
        assert choose_splitters(len(receivers), plan.splitters) is not None
    assert max(len(receivers) for _, receivers in groups) == min(racks - 1, 7)


def test_there_are_as_many_groups_as_can_be_counted():
    plan = LabPlan(racks=4, hosts_per_rack=1, splitters={2: 1})
    assert widest_group(plan) == 3
    groups = {(sender, frozenset(receivers)) for sender, receivers in cold_groups(plan, most_groups(plan))}
    racks = ("r1h1", "r2h1", "r3h1", "r4h1")
    pairs = {(s, frozenset((a, b))) for s in racks for a in racks for b in racks if len({s, a, b}) == 3}
    assert groups == pairs
    with pytest.raises(ValueError, match="only 12"):
        cold_groups(plan, 13)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--racks", "5"], "between 6 and 32"),
        (["--racks", "33"], "between 6 and 32"),
        (["--requests", "0"], "at least 1"),
        (["--racks", "6", "--requests", "156"], "below 156"),
        (["--json", "/no/such/folder/x.json"], "does not exist"),
        (["--file", "/no/such/file"], "not a file"),
    ],
)
def test_wrong_input_is_one_sentence_and_status_2(parse, capsys, arguments, words):
    options = parse(*arguments)
    assert options.run(options) == 2
    message = capsys.readouterr().err
    assert words in message and message.startswith("blast lab demo: ") and message.count("\n") == 1


def test_a_file_too_short_to_tell_a_rate_is_refused(parse, capsys, tmp_path):
    short = tmp_path / "short"
    with short.open("wb") as file:
        file.truncate(LEAST_FILE - 1)
    options = parse("--file", str(short))
    assert options.run(options) == 2
    assert "less than 8 MB" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (DemoError("of 20 packets some hosts got a part"), "some hosts got a part"),
        (NotYet("no splitter is free"), "not yet: no splitter is free"),
        (Rejected("group_too_wide", "Too wide.", 8), "Too wide"),
        (ControllerUnreachable(Address("127.0.0.1", 9), "refused"), "no answer from a controller"),
        (LightPathError("the interface is down"), "the interface is down"),
        (OSError(28, "No space left on device"), "No space left"),
    ],
)
def test_what_a_scene_raises_is_one_sentence_and_status_1(parse, capsys, monkeypatch, error, words):
    def fail(_options):
        raise error

    monkeypatch.setattr(command, "_played", fail)
    options = parse()
    assert options.run(options) == 1
    message = capsys.readouterr().err
    assert words in message and message.startswith("blast lab demo: ") and message.count("\n") == 1


def transfer(mbps=99.0, copies=1.01, core=0.001, equal=True):
    return Transfer("light-1", 7, 8_000_000, 64.0 / mbps, equal, copies, core, 100.0)


@pytest.mark.parametrize(
    ("transfers", "failing"),
    [
        ([transfer(), transfer(), transfer(mbps=40)], None),
        ([transfer(), transfer(mbps=80), transfer(mbps=40)], "payload"),
        ([transfer(), transfer(), transfer(copies=1.2)], "uplink"),
        ([transfer(), transfer(), transfer(core=0.02)], "core"),
        ([transfer(), transfer(), transfer(equal=False)], "intact"),
    ],
)
def test_one_slow_transfer_is_the_machine_s_but_what_was_carried_counts_each_time(stage, transfers, failing):
    check_light(stage, transfers)
    failed = [check.claim for check in stage.results.checks if not check.holds]
    assert len(failed) == (failing is not None)
    assert all(failing in claim for claim in failed)
    assert f"worst {min(t.payload_mbps for t in transfers):.1f}" in stage.out.getvalue()


@pytest.mark.parametrize(("found", "taken", "asked"), [([5], 5, 1), ([3, 7], 7, 2), ([3, 4, 9], 4, 2)])
def test_a_measurement_is_repeated_once_and_says_so(stage, found, taken, asked):
    left = list(found)
    assert stage.at_most_twice(lambda: left.pop(0), lambda value: value >= 5) == taken
    assert len(found) - len(left) == asked
    assert ("once more" in stage.out.getvalue()) == (asked == 2)


HOLDER = """
import signal, sys, time
from mininet_topos.ending import end_in_order
end_in_order(int(sys.argv[1]))
try:
    print("up", flush=True)
    time.sleep(60)
finally:
    print("removing", flush=True)
    time.sleep(0.3)
    print("removed", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_in_order_and_a_second_one_changes_nothing(number):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, "143"], stdout=subprocess.PIPE, text=True)
    with holder:
        assert holder.stdout.readline() == "up\n"
        os.kill(holder.pid, number)
        assert holder.stdout.readline() == "removing\n"
        os.kill(holder.pid, signal.SIGTERM)
        assert holder.stdout.readline() == "removed\n"
        assert holder.wait(30) == 143
