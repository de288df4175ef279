"""The soak: its comparison of journal, flow tables and cross-connects, its schedule, and its verdict."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

FORWARD = {"in_port": 1, "source": "10.0.1.1", "group": "239.77.0.1", "outputs": [91]}
LEAF = {"in_port": 91, "source": "10.0.1.1", "group": "239.77.0.1", "outputs": [2, 1]}
TREE = {
    "static": None,
    "root": {"input": 1, "output": 1},
    "splitters": [{"input": 11, "outputs": [11, 12, 13, 14], "feed": 1}],
    "leaves": [{"input": 2, "output": 2, "feed": 11}],
}
RESERVATION = {
    "request": ["physics", "k"],
    "state": "lit",
    "layout": {"tree": TREE, "forwards": {"1": [FORWARD], "2": [LEAF]}},
}
REQUEST = {"parts": [{"state": "active", "reservation": 7}, {"state": "pending", "reservation": None}]}
ROWS = [
    ("meta", "last reservation", '{"id": 7}'),
    ("reservation", "7", json.dumps(RESERVATION)),
    ("request", "physics/k", json.dumps(REQUEST)),
]
GUARD = (
    " cookie=0xb1a5000100000000, duration=9.1s, table=0, n_packets=3, n_bytes=9, priority=30000,ip,"
    "nw_dst=239.77.0.0/16 actions=drop"
)
AT_ROOT = (
    " cookie=0xb1a5000100000007, duration=1.2s, table=0, n_packets=0, n_bytes=0, priority=40000,ip,"
    "in_port=1,nw_src=10.0.1.1,nw_dst=239.77.0.1 actions=set_field:46->ip_dscp,output:91"
)
AT_LEAF = (
    " cookie=0xb1a5000100000007, duration=1.2s, table=0, n_packets=0, n_bytes=0, priority=40000,ip,"
    "in_port=91,nw_src=10.0.1.1,nw_dst=239.77.0.1 actions=set_field:46->ip_dscp,output:1,output:2"
)
ORDINARY = " cookie=0x0, duration=9.1s, table=0, n_packets=3, n_bytes=9, priority=1,ip,nw_dst=10.0.2.0/24 actions=drop"


def readings(rows=ROWS, first=(GUARD, AT_ROOT, ORDINARY), second=(GUARD, AT_LEAF), circuits=((1, 11), (11, 2))):
    from benchmarks.transfers.soak_bed.comparison import Readings, add_flow_table, add_journal

    read = Readings(held_circuits=set(circuits))
    add_journal(read, rows)
    for datapath, dump in ((1, first), (2, second)):
        add_flow_table(read, datapath, "\n".join(dump))
    return read


def faults(**changes):
    from benchmarks.transfers.soak_bed.comparison import differences

    return differences(readings(**changes))


def test_agreeing_accounts_have_no_differences() -> None:
    assert faults() == []
    one_rack = json.dumps({**RESERVATION, "layout": {"tree": None, "forwards": {"1": [FORWARD]}}})
    assert faults(rows=[("reservation", "7", one_rack), ROWS[2]], second=(GUARD,), circuits=()) == []


def test_leaked_and_missing_rules_and_circuits_are_found() -> None:
    leaked = AT_LEAF.replace("00000007", "00000003").replace("239.77.0.1", "239.77.0.9")
    (fault,) = faults(second=(GUARD, AT_LEAF, leaked))
    assert "the ToR has the rule 10.0.1.1 -> 239.77.0.9 from port 91" in fault and "the journal does not" in fault
    (fault,) = faults(first=(GUARD,))
    assert "the journal has the rule 10.0.1.1 -> 239.77.0.1 from port 1 to 91" in fault
    assert len(faults(second=(GUARD, AT_LEAF.replace(",output:2", "")))) == 2, "one is missing, one leaked"
    assert faults(circuits=((1, 11), (5, 6))) == [
        "the journal has the cross-connect 11-2, and the optical switch does not",
        "the optical switch has the cross-connect 5-6, and the journal does not",
    ]
    assert faults(first=(AT_ROOT,)) == ["datapath 1 has no guards"]
    (fault,) = faults(second=(GUARD, AT_LEAF, AT_LEAF.replace("0xb1a5000100000007", "0x0")))
    assert "a rule that is not ours" in fault


def test_inconsistent_rows_of_the_journal_are_found() -> None:
    assert any("which the journal does not know" in fault for fault in faults(rows=ROWS[:2]))
    assert "physics/k is active with reservation 7, which the journal does not have" in faults(rows=ROWS[2:])
    pending = json.dumps({"parts": [{"state": "pending", "reservation": None}]})
    (fault,) = faults(rows=[*ROWS[:2], ("request", "physics/k", pending)])
    assert "has no active part with it" in fault
    (fault,) = faults(rows=[ROWS[0], ("reservation", "7", json.dumps({**RESERVATION, "state": "changing"})), ROWS[2]])
    assert "changing, not at rest" in fault


def test_dark_lab_holds_only_guards() -> None:
    from benchmarks.transfers.soak_bed.comparison import dark

    assert dark(readings(rows=ROWS[:1], first=(GUARD, ORDINARY), second=(GUARD,), circuits=())) == []
    assert len(dark(readings())) == 1 + 2 + 2


def test_copy_is_judged_by_its_bytes(tmp_path: Path) -> None:
    from benchmarks.transfers.soak_bed.transfers import outcome, sha256, verdict

    original, copy = tmp_path / "original", tmp_path / "copy"
    original.write_bytes(bytes(1000))
    digest = sha256(original)
    assert verdict("f at h", digest, copy, reported=False) is None
    assert "is missing" in (verdict("f at h", digest, copy, reported=True) or "")
    copy.write_bytes(bytes(1000))
    assert verdict("f at h", digest, copy, reported=True) is None
    copy.write_bytes(bytes(999) + b"\1")
    assert verdict("f at h", digest, copy, reported=False) == "f at h: the SHA-256 differs from the original's"

    receivers = [
        {"complete": done, "reason": reason} for done, reason in ((True, None), (False, "gone"), (False, "gone"))
    ]
    result = {"event": "result", "transfers": [{"transports": ["optical"], "receivers": receivers}]}
    result |= {"unreachable": {"h9": "no route"}, "no_optical_path": "away"}
    lines = '{"event": "progress"}\n' + json.dumps(result)
    assert outcome(lines) == ("no route; gone; away", True)
    assert outcome("") == ("", False)


def test_growth_after_the_warm_up_is_found() -> None:
    from benchmarks.transfers.soak_bed.report import level

    megabyte = 1 << 20
    seconds = [float(second) for second in range(0, 3600, 5)]
    flat = level([(at, 100.0 * megabyte + min(at, 500) * megabyte) for at in seconds])
    growing = level([(at, 100.0 * megabyte + at / 36 * megabyte) for at in seconds])
    assert flat is not None and flat.flat and flat.since == 600
    assert growing is not None and not growing.flat
    assert level([(0.0, 1.0)]) is None


def test_schedule_fills_the_time_and_clients_are_divided() -> None:
    from benchmarks.transfers.soak_bed.scenario import BASELINE, CLIENT_ATTACKS, SENDERS, SOAK, roster, slices

    for minutes in (0.5, 3, 60):
        plan = slices(minutes)
        assert sum(part.seconds for part in plan) == pytest.approx(minutes * 60)
        assert [part.phase for part in plan] == [BASELINE, SOAK] * (len(plan) // 2)
    clients = roster(50, 7)
    assert clients.attacks == (*CLIENT_ATTACKS, *CLIENT_ATTACKS[:2])
    assert clients.applications + clients.observers + SENDERS + 7 == 50
    with pytest.raises(ValueError, match="unknown attack 'smile'"):
        roster(20, 2, ["smile"])
    with pytest.raises(ValueError, match="at least 4"):
        roster(8, 5)


def test_few_more_descriptors_are_no_leak() -> None:
    from benchmarks.transfers.soak_bed.report import Held
    from benchmarks.transfers.soak_bed.run import leaks

    before = {"the controller": Held(1 << 20, 30, 10), "agent h": Held(1 << 20, 9, 1)}
    assert leaks(before, {**before, "agent h": Held(9 << 20, 20, 4)}) == []
    (fault,) = leaks(before, {**before, "agent h": Held(1 << 20, 900, 1)})
    assert fault == "agent h has 891 more descriptors than before the load"
    assert leaks(before, {**before, "agent h": None}) == ["agent h no longer runs"]


def test_missing_comparison_fails_and_times_do_not() -> None:
    from benchmarks.transfers.soak_bed.report import ALL, SEND, Call, Reached, Window, lines, to_json
    from benchmarks.transfers.soak_bed.scenario import BASELINE, SOAK, roster, slices
    from benchmarks.transfers.soak_bed.transfers import Received

    windows = [Window(BASELINE, 0, 10), Window(SOAK, 10, 20)]
    calls = [Call("ping", 1, 0.001), Call("ping", 11, 5.0), Call("ping", 12, 0.0, "TimedOut"), Call(SEND, 13, 500.0)]
    reached = Reached(roster(50, 5), slices(1), calls, windows, received=[Received(intact=3)])
    assert reached.failures == ["journal, rules and cross-connects were not compared"]
    reached.compared = True
    assert reached.failures == []
    found = reached.phase(SOAK)[ALL]
    assert (found.due, found.completed, found.p99) == (2, 1, 5.0), "a transfer is no call"
    assert to_json(reached)["p99_ratio"] == pytest.approx(5000)
    report = "\n".join(lines(reached))
    assert report.count("MISSED") == 2 and "FAILED" not in report
    reached.received = [Received(intact=3, wrong=["f at h: the SHA-256 differs from the original's"])]
    assert reached.failures == ["f at h: the SHA-256 differs from the original's"]
    reached.received = [Received()]
    assert reached.failures == ["no file arrived, so none was compared"]


def test_joined_groups_are_parsed() -> None:
    from benchmarks.transfers.soak_bed.forger import joined

    igmp = (
        "Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n1\tlo        :     1      V3\n"
        "\t\t\t\t010000E0     1 0:00000000\t\t0\n2\teth0      :     2      V3\n\t\t\t\t05014DEF     1 0:00000000\t\t0\n"
    )
    if sys.byteorder == "little":
        assert joined(igmp) == ["239.77.1.5"]


def test_controller_has_the_niceness_of_its_unit() -> None:
    from benchmarks.transfers.soak_bed.room import NICENESS
    from tests.support.systemd import UNITS, unit_of

    assert unit_of(UNITS / "blast-controller.service")["Service"]["Nice"] == str(NICENESS)
