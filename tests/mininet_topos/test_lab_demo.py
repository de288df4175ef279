"""The decisions of the demo: its groups, its option checks, its acceptance limits, and its errors."""

import argparse
import io
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest

from algorithms.splitter_tree import choose_splitters
from blast_api.ttypes import Rejected
from blast_client.api.address import Address
from blast_client.api.calls import ControllerUnreachableError
from blast_controller.core.model.records import Record
from blast_controller.store.interface import Entry
from blast_controller.store.reader import JournalReader
from mininet_topos import command as lab_command
from mininet_topos.demo import command, iperf, iterations, latency
from mininet_topos.demo.commits import SeparateJournal, renamed, until_granted
from mininet_topos.demo.floor import together
from mininet_topos.demo.groups import cold_groups, max_groups, widest_group
from mininet_topos.demo.latency_table import latency_table
from mininet_topos.demo.report import table
from mininet_topos.demo.results import Latencies, MeasuredTransfer, Quantity, Results
from mininet_topos.demo.settings import demo_plan
from mininet_topos.demo.stage import Stage
from mininet_topos.demo.transfers import check_intact, check_optical
from mininet_topos.kernel.errors import DemoError
from mininet_topos.topology.plan import LabPlan

STEPS = ("call_and_commit_after", "compute", "commit_before", "openflow", "optical", "total", "first_datagram")
FLOORS = ("ping", "commit_before", "commit_after", "barrier", "tl1", "total")


@pytest.fixture
def parse():
    parser = argparse.ArgumentParser(prog="blast")
    lab_command.register(parser.add_subparsers(required=True))
    return lambda *arguments: parser.parse_args(["lab", "demo", *arguments])


@pytest.fixture
def stage():
    return Stage(SimpleNamespace(plan=demo_plan(8)), None, Results("1:100"), io.StringIO(), "x")


@pytest.mark.parametrize("racks", [6, 9, 32])
def test_cold_groups_are_distinct_and_fit_splitters(racks):
    plan = demo_plan(racks)
    groups = cold_groups(plan, 101)
    assert len({(sender, frozenset(receivers)) for sender, receivers in groups}) == 101
    for sender, receivers in groups:
        assert sender not in receivers and len(set(receivers)) == len(receivers) >= 2
        assert choose_splitters(len(receivers), plan.splitters) is not None
    assert max(len(receivers) for _, receivers in groups) == min(racks - 1, 7)


def test_max_groups_counts_all_distinct_groups():
    plan = LabPlan(racks=4, hosts_per_rack=1, splitters={2: 1})
    assert widest_group(plan) == 3
    groups = {(sender, frozenset(receivers)) for sender, receivers in cold_groups(plan, max_groups(plan))}
    racks = ("r1h1", "r2h1", "r3h1", "r4h1")
    pairs = {(s, frozenset((a, b))) for s in racks for a in racks for b in racks if len({s, a, b}) == 3}
    assert groups == pairs
    with pytest.raises(ValueError, match="only 12"):
        cold_groups(plan, 13)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--racks", "33"], "between 6 and 32"),
        (["--requests", "0"], "at least 1"),
        (["--racks", "6", "--requests", "156"], "below 156"),
        (["--file", "/no/such/file"], "not a file"),
        (["--file", __file__], "less than 8 MB"),
    ],
)
def test_invalid_option_exits_with_status_2_and_one_sentence(parse, capsys, arguments, words):
    options = parse(*arguments)
    assert options.run(options) == 2
    message = capsys.readouterr().err
    assert words in message and message.startswith("blast lab demo: ") and message.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (DemoError("of 20 packets some hosts got a part"), "some hosts got a part"),
        (Rejected("group_too_wide", "Too wide.", 8), "Too wide"),
        (ControllerUnreachableError(Address("127.0.0.1", 9), "refused"), "no answer from a controller"),
        (OSError(28, "No space left on device"), "No space left"),
    ],
)
def test_error_of_scene_exits_with_status_1_and_one_sentence(parse, capsys, monkeypatch, error, words):
    def fail(_options):
        raise error

    monkeypatch.setattr(command, "_played", fail)
    options = parse()
    assert options.run(options) == 1
    message = capsys.readouterr().err
    assert words in message and message.startswith("blast lab demo: ") and message.count("\n") == 1


def transfer(mbps=99.0, copies=1.01, core=0.001, equal=True, repeated=0.0):
    return MeasuredTransfer("optical-1", 7, 8_000_000, 64.0 / mbps, equal, copies, core, 100.0, repeated)


@pytest.mark.parametrize(
    ("transfers", "failing"),
    [
        ([transfer(), transfer(), transfer(mbps=40)], None),
        ([transfer(), transfer(), transfer(copies=1.2)], "uplink"),
        ([transfer(), transfer(), transfer(copies=1.5, repeated=0.49)], None),
        ([transfer(), transfer(), transfer(equal=False)], "intact"),
    ],
)
def test_optical_checks_apply_to_every_transfer(stage, transfers, failing):
    check_optical(stage, transfers)
    failed = [check.claim for check in stage.results.checks if not check.holds]
    assert len(failed) == (failing is not None)
    assert all(failing in claim for claim in failed)
    assert f"worst {min(t.payload_mbps for t in transfers):.0f}" in stage.out.getvalue()


def test_intact_check_reports_reason_per_receiver(stage):
    faults = ("r3h1: did not confirm", "r4h1: another SHA-256, or no file")
    check_intact(stage, "all arrived", [transfer(), replace(transfer(equal=False), faults=faults)], "2 transfers")
    assert not stage.results.holds
    for fault in faults:
        assert f"optical-1: {fault}" in stage.out.getvalue()


# --------------------------------------------------------------------------------- slow machines do not fail


def test_slow_optical_transfers_are_reported_without_failing(stage):
    check_optical(stage, [transfer(mbps=1.0, copies=1.26, core=0.5, repeated=0.25)] * 3)
    assert stage.results.holds
    measured = {one.name: one.quantity.value for one in stage.results.measured}
    assert measured == {
        "optical payload rate, median": 1.0,
        "share of a file through the packet core, maximum": 50.0,
        "share of a file retransmitted over the optical path, maximum": 25.0,
    }


def test_slow_requests_are_reported_with_paper_and_floor_without_failing(stage, monkeypatch):
    def slow(stage, requests):
        for _ in range(requests):
            stage.results.latencies.add(dict.fromkeys(STEPS, 4000.0))
            stage.results.floor.add(dict.fromkeys(FLOORS, 900.0))

    monkeypatch.setattr(latency, "measure", slow)
    latency.play(stage, 3)
    assert stage.results.holds
    (measurement,) = stage.results.measured
    assert measurement.quantity.value == 4000.0
    assert measurement.quantity.beside == {"floor": 900.0, "paper": pytest.approx(33.183)}


def test_lost_datagrams_are_reported_and_silent_receiver_fails(stage, monkeypatch):
    monkeypatch.setattr(stage, "wait_dark", lambda: None)
    monkeypatch.setattr(stage, "granted", lambda request: nullcontext())
    for deaf, holds in ((0, True), (1, False)):
        loss = iperf.MeasuredLoss(lost=120, sent=19_000, deaf=deaf)
        monkeypatch.setattr(iperf, "_run", lambda stage, grant, sender, loss=loss: loss)
        iperf.play(stage)
        assert stage.results.checks[-1].holds is holds
        assert stage.results.measured[-1].quantity.value == 120


LINE = "20261122101736,10.0.1.1,59412,239.77.0.9,5001,1,{interval},649000,10384000,0.002,{lost},{sent},0.000,0"


@pytest.mark.parametrize(
    ("intervals", "found"),
    [
        ([("0.0-0.5", 0, 10), ("0.5-1.0", 2, 12), ("0.0-2.0", 3, 44), ("2.0-2.5", 9, 9)], (3, 44)),
        ([("0.0-0.5", 0, 10), ("0.5-1.0", 2, 12)], (2, 22)),
        ([], (0, 0)),
    ],
    ids=["whole", "its end was lost", "deaf"],
)
def test_loss_counts_intervals_if_iperf_summary_is_missing(intervals, found):
    lines = [LINE.format(interval=interval, lost=lost, sent=sent) for interval, lost, sent in intervals]
    assert iperf.lost_and_sent(lines) == found


def test_slow_unicast_is_reported_with_link_minimum_without_failing(stage):
    job = SimpleNamespace(size=8_000_000, hosts=["r2h1"] * 7, by_unicast=lambda name: transfer(mbps=0.5))
    iterations._by_unicast(stage, job)
    assert stage.results.holds
    (measurement,) = stage.results.measured
    assert measurement.quantity.value == 128.0
    assert measurement.quantity.beside["minimum by access link"] == pytest.approx(4.5, rel=0.1)


def test_summary_separates_measurements_from_checks(stage):
    stage.scene = "a"
    stage.check("members", True, "all")
    stage.measured("request to grant, p50", Quantity(20.25, "ms", {"floor": 19.0, "paper": 33.183}))
    stage.results.transfers.append(transfer())
    lines = table(stage.results)
    measured = next(n for n, line in enumerate(lines) if line.startswith("MEASUREMENTS"))
    checked = next(n for n, line in enumerate(lines) if line.startswith("CHECKS"))
    info = lines.index("info (a) request to grant, p50: 20.250 ms (floor 19, paper 33.183)")
    assert measured < info < checked < lines.index("ok   (a) members: all")
    assert "1 of 1 passed" in lines[checked]
    heading, row = (line for line in lines if line.startswith(("transfer", "optical")))
    assert len(heading) == len(row)


def test_latency_table_is_aligned_and_marks_unknown_values():
    seen, floor = Latencies(), Latencies()
    seen.add(dict.fromkeys(STEPS, 2.5))
    floor.add(dict.fromkeys(FLOORS, 0.5))
    heading, *rows = [line for line in latency_table(seen, floor) if not line.startswith(("floor", "0.500"))]
    assert heading.split() == ["milliseconds", "paper", "floor", "p50", "p99"]
    assert {len(row) for row in rows} == {len(heading)}
    by_name = {row[:46].strip(): row[46:].split() for row in rows}
    assert by_name["control algorithm"] == ["8.553", "-", "2.500", "2.500"]
    assert by_name["Thrift call, last journal commit, hand-overs"] == ["1.747", "1.000", "2.500", "2.500"]
    assert by_name["optical switch: TL1, and 14.172 of mirrors"] == ["14.172", "14.672", "2.500", "2.500"]
    assert by_name["sum of the steps"] == ["33.183", "16.672", "12.500", "-"]


@pytest.mark.parametrize(("touches", "total"), [(True, 1 + 2 + 17.172 + 4), (False, 1 + 2 + 4)])
def test_floor_counts_slower_device_once(touches, total):
    parts = {"ping": 1.0, "commit_before": 2.0, "barrier": 0.5, "tl1": 3.0, "commit_after": 4.0}
    assert together(parts, touches_devices=touches) == pytest.approx(total)


# ---------------------------------------------------------------------------------------------------- the floor is real


def test_commits_of_request_are_split_and_end_at_grant():
    entries = [
        Entry(5, 10.0, 1, "reservation", "7", "configuring", {"a": 1}),
        Entry(6, 10.0, 1, "request", "t/k", "picked", {"b": 2}),
        Entry(7, 10.2, 1, "reservation", "7", "lit", {"a": 3}),
        Entry(8, 10.2, 1, "request", "t/k", "granted", {"b": 4}),
        Entry(9, 10.5, 1, "reservation", "7", "releasing", {"a": 5}),
    ]
    before, after = until_granted(entries, frozenset({"port:r1/1"}))
    assert [(one.kind, one.note) for one in before] == [("reservation", "configuring"), ("request", "picked")]
    assert [one.note for one in after] == ["lit", "granted"]
    assert before[0].elements == after[0].elements == {"port:r1/1"} and before[1].elements == frozenset()


def test_renamed_commits_can_be_written_again(tmp_path):
    commit = (Record("reservation", "7", {"a": 1}, frozenset({"port:r1/1"}), "lit"),)
    beside = SeparateJournal(tmp_path / "journal.sqlite")
    try:
        # The second would be refused if it held the first one's elements.
        assert all(beside.seconds(renamed(commit, number)) > 0 for number in range(2))
        reader = JournalReader(tmp_path / "floor-journal.sqlite")
        assert [entry.key for entry in reader.read(0, 100) if entry.kind == "reservation"] == ["7/0", "7/1"]
        reader.close()
    finally:
        beside.close()
