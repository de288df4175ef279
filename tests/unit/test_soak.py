"""The pure parts of the soak: what it makes of what it reads, and what it calls a fault."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(autouse=True, scope="module")
def benchmarks_on_path() -> Iterator[None]:
    sys.path.insert(0, str(BENCHMARKS))
    yield
    sys.path.remove(str(BENCHMARKS))


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


def agreeing(rows=ROWS, first=(GUARD, AT_ROOT, ORDINARY), second=(GUARD, AT_LEAF), circuits=((1, 11), (11, 2))):
    from soak.comparison import Readings
    from soak.readings import flow_table, journal_of

    flows = {1: flow_table(1, "\n".join(first)), 2: flow_table(2, "\n".join(second))}
    return Readings(journal_of(rows), flows, frozenset(circuits))


def faults(**changes):
    from soak.comparison import differences

    return differences(agreeing(**changes))


def test_three_accounts_that_agree_have_no_differences() -> None:
    assert faults() == []


def test_a_leaked_rule_is_told() -> None:
    leaked = AT_LEAF.replace("00000007", "00000003").replace("239.77.0.1", "239.77.0.9")
    (fault,) = faults(second=(GUARD, AT_LEAF, leaked))
    assert "the ToR has the rule 10.0.1.1 -> 239.77.0.9 from port 91" in fault and "the journal does not" in fault


def test_a_missing_rule_and_one_with_other_outputs_are_told() -> None:
    (fault,) = faults(first=(GUARD,))
    assert "the journal has the rule 10.0.1.1 -> 239.77.0.1 from port 1 to 91" in fault
    assert len(faults(second=(GUARD, AT_LEAF.replace(",output:2", "")))) == 2, "one is missing, another too many"


def test_a_leaked_cross_connect_and_a_missing_one_are_told() -> None:
    assert faults(circuits=((1, 11), (11, 2), (5, 6))) == [
        "the optical switch has the cross-connect 5-6, and the journal does not"
    ]
    assert faults(circuits=((1, 11),)) == ["the journal has the cross-connect 11-2, and the optical switch does not"]


def test_a_row_of_the_journal_without_devices_is_told() -> None:
    found = faults(first=(GUARD,), second=(GUARD,), circuits=())
    assert len(found) == 4 and all(fault.startswith("the journal has the ") for fault in found)


def test_rows_that_do_not_name_each_other_are_told() -> None:
    assert any("which the journal does not know" in fault for fault in faults(rows=ROWS[:2]))
    assert "physics/k is active with reservation 7, which the journal does not have" in faults(rows=ROWS[2:])
    pending = json.dumps({"parts": [{"state": "pending", "reservation": None}]})
    (fault,) = faults(rows=[*ROWS[:2], ("request", "physics/k", pending)])
    assert "has no active part with it" in fault
    (fault,) = faults(rows=[ROWS[0], ("reservation", "7", json.dumps({**RESERVATION, "state": "changing"})), ROWS[2]])
    assert "changing, not at rest" in fault


def test_a_tor_without_guards_and_strange_rules_for_groups_are_told() -> None:
    assert faults(first=(AT_ROOT,)) == ["datapath 1 has no guards"]
    stolen = AT_LEAF.replace("0xb1a5000100000007", "0x0")
    (fault,) = faults(second=(GUARD, AT_LEAF, stolen))
    assert "a rule that nobody of ours writes" in fault


def test_a_dark_lab_holds_guards_and_nothing_else() -> None:
    from soak.comparison import dark

    assert dark(agreeing(rows=ROWS[:1], first=(GUARD, ORDINARY), second=(GUARD,), circuits=())) == []
    assert len(dark(agreeing())) == 1 + 2 + 2


def test_a_tree_within_one_rack_has_no_circuits() -> None:
    body = {**RESERVATION, "layout": {"tree": None, "forwards": {"1": [FORWARD]}}}
    assert faults(rows=[("reservation", "7", json.dumps(body)), ROWS[2]], second=(GUARD,), circuits=()) == []


def test_a_copy_is_right_only_by_its_bytes(tmp_path: Path) -> None:
    from soak.files import sha256, verdict

    original, copy = tmp_path / "original", tmp_path / "copy"
    original.write_bytes(bytes(1000))
    digest = sha256(original)
    assert verdict("f at h", digest, copy, said_to_be_there=False) is None
    assert "it is not" in (verdict("f at h", digest, copy, said_to_be_there=True) or "")
    copy.write_bytes(bytes(1000))
    assert verdict("f at h", digest, copy, said_to_be_there=True) is None
    copy.write_bytes(bytes(999) + b"\1")
    for said in (True, False):
        assert verdict("f at h", digest, copy, said_to_be_there=said) == "f at h: its SHA-256 is not the original's"


def test_calls_belong_to_the_slice_in_which_they_were_due() -> None:
    from soak.latencies import Call, Window, in_phase

    windows = [Window("baseline", 10, 20), Window("soak", 25, 30), Window("baseline", 40, 50)]
    calls = [Call("ping", at, 0.1) for at in (9, 10, 19.9, 20, 22, 25, 45)]
    assert [call.at for call in in_phase(calls, windows, "baseline")] == [10, 19.9, 45]
    assert [call.at for call in in_phase(calls, windows, "soak")] == [25]


def test_figures_are_of_completed_calls_and_count_the_others() -> None:
    from soak.latencies import ALL, SEND, Call, by_kind, figures

    calls = [Call("ping", 0, n / 100) for n in range(1, 201)] + [Call("ping", 0, 99.0, "NotYet")] * 50
    found = figures(calls)
    assert (found.due, found.completed, found.completion) == (250, 200, 0.8)
    assert (found.p50, found.p99, found.longest) == pytest.approx((1.005, 1.98, 2.0))
    assert by_kind([*calls, Call(SEND, 0, 500.0)])[ALL] == found, "a transfer is no call"
    assert figures([]).completion is None


def test_what_levels_off_is_flat_and_what_goes_on_growing_is_not() -> None:
    from soak.flatness import level

    megabyte = 1 << 20
    minutes = [float(second) for second in range(0, 3600, 5)]
    levelled = level([(at, 100.0 * megabyte + min(at, 500) * megabyte) for at in minutes])
    growing = level([(at, 100.0 * megabyte + at / 36 * megabyte) for at in minutes])
    assert levelled is not None and levelled.flat and levelled.since == 600
    assert growing is not None and not growing.flat
    assert level([(0.0, 1.0)]) is None
    short = level([(float(at), 1.0) for at in range(100)])
    assert short is not None and short.since == 99 / 2, "too short for the warm-up, and says so"


def test_baseline_and_soak_alternate_and_fill_the_time() -> None:
    from soak.schedule import BASELINE, CALIBRATION, SOAK, slices

    for minutes in (0.5, 3, 60):
        plan = slices(minutes)
        assert sum(part.seconds for part in plan) == pytest.approx(minutes * 60)
        assert [part.phase for part in plan[1:]] == [BASELINE, SOAK] * (len(plan) // 2) and plan[0].phase == CALIBRATION
        assert all(part.seconds > 0 for part in plan)
    hour = slices(60)
    assert sum(part.seconds for part in hour if part.phase == BASELINE) == pytest.approx(600, rel=0.02)


def test_clients_are_shared_out() -> None:
    from soak.roster import ATTACKS, roster

    all_of_them = roster(50, 5)
    assert all_of_them.attacks == tuple(ATTACKS)
    assert all_of_them.applications + all_of_them.observers + all_of_them.senders + 5 == 50
    assert roster(20, 7).attacks == (*ATTACKS, *list(ATTACKS)[:2])
    assert roster(4, 0).intrusions == ()
    assert roster(20, 2, ["view"]).attacks == ("view", "view")
    with pytest.raises(ValueError, match="no attack 'smile'"):
        roster(20, 2, ["smile"])
    with pytest.raises(ValueError, match="at least 4"):
        roster(8, 5)


def test_descriptors_that_stay_are_a_leak_and_a_few_are_not() -> None:
    from soak.sampling import Held, leaks

    before = {"the controller": Held(1 << 20, 30, 10), "agent h": Held(1 << 20, 9, 1)}
    assert leaks(before, {**before, "agent h": Held(9 << 20, 20, 4)}) == []
    (fault,) = leaks(before, {**before, "agent h": Held(1 << 20, 900, 1)})
    assert fault == "agent h has 891 descriptors more than before the load"
    assert leaks(before, {**before, "agent h": None}) == ["agent h does not run any more"]


def test_who_has_compared_nothing_has_failed_and_times_decide_nothing() -> None:
    from soak.files import Received
    from soak.latencies import Call, Window
    from soak.reached import Reached
    from soak.report import lines, to_json
    from soak.roster import roster
    from soak.schedule import BASELINE, SOAK, slices

    windows = [Window(BASELINE, 0, 10), Window(SOAK, 10, 20)]
    calls = [Call("ping", 1, 0.001), Call("ping", 11, 5.0), Call("ping", 12, 0.0, "NotYet")]
    reached = Reached(roster(50, 5), slices(1), calls, windows, received=[Received(intact=3)])
    assert reached.failures == ["journal, rules and cross-connects were not compared"]
    reached.compared = True
    assert reached.failures == []
    report = "\n".join(lines(reached))
    assert report.count("NOT MET") == 2 and "FAILED" not in report
    told = to_json(reached)
    assert told["p99_ratio"] == pytest.approx(5000)
    assert [(call["at"], call["seconds"]) for call in told["slowest"][SOAK]] == [(11, 5.0)]
    reached.received = [Received(intact=3, wrong=["f at h: its SHA-256 is not the original's"]), Received(intact=1)]
    assert reached.failures == ["f at h: its SHA-256 is not the original's"]
    reached.received = [Received()]
    assert replace(reached).failures == ["no file arrived, so none was compared"]


def test_joined_groups_are_read_as_the_kernel_writes_them() -> None:
    from soak.forger import joined

    igmp = (
        "Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n1\tlo        :     1      V3\n"
        "\t\t\t\t010000E0     1 0:00000000\t\t0\n2\teth0      :     2      V3\n\t\t\t\t05014DEF     1 0:00000000\t\t0\n"
    )
    if sys.byteorder == "little":
        assert joined(igmp) == ["239.77.1.5"]


def test_what_light_carried_is_read_from_the_last_line() -> None:
    from soak.files import went_by_light

    def result(*ways: str) -> str:
        return json.dumps({"event": "result", "transfers": [{"carriers": list(ways)}]})

    assert went_by_light('{"event": "progress"}\n' + result("pipeline", "optical"))
    assert not went_by_light(result("pipeline"))
    assert not went_by_light("")


def test_why_receivers_do_not_have_a_file_is_read_from_the_last_line() -> None:
    from soak.files import reasons

    receivers = [{"complete": done, "reason": why} for done, why in ((True, None), (False, "gone"), (False, "gone"))]
    result = {
        "event": "result",
        "transfers": [{"carriers": ["optical"], "receivers": receivers}],
        "unreachable": {"h9": "no route to host"},
        "no_light": "the light path is away",
    }
    assert reasons('{"event": "progress"}\n' + json.dumps(result)) == "no route to host; gone; the light path is away"
    assert reasons("") == ""


def test_what_is_burnt_comes_in_the_rhythm_of_what_was_used() -> None:
    from soak.rhythm import Rhythm

    used = iter([0.0, 0.0, 0.1, 0.1, 0.1])
    seen: list[float] = []
    enough = threading.Event()

    def cpu_seconds() -> float:
        seen.append(next(used, 0.1))
        if len(seen) >= 5:
            enough.set()
        return seen[-1]

    rhythm = Rhythm(cpu_seconds)
    assert enough.wait(30)
    shares = rhythm.stop()
    assert [round(share, 3) for share in shares[:4]] == [0.0, 1.0, 0.0, 0.0]


def test_the_controller_goes_before_other_work_as_its_unit_says():
    from soak.room import NICENESS

    from tests.support.systemd import UNITS, unit_of

    assert unit_of(UNITS / "blast-controller.service")["Service"]["Nice"] == str(NICENESS)
