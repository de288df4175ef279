"""Traces reduced for the lab: invariants of folding and scaling, and results in the simulator's format."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_api.ttypes import PartState
from blast_client.cli.command import main
from blast_client.send.part_sending import PartSent
from blast_sim.base.wrong_input import InputError
from blast_sim.replay.result import policy_row
from blast_sim.traces.coflow_file import parse_coflows, written
from blast_sim.traces.deriving import Volume, derived
from blast_sim.traces.scaling import as_coflows, scaled
from blast_sim.traces.workload import Shuffle, TraceMulticast, Workload
from blast_transport.base.report import ReceiverOutcome, TransferResult
from blast_transport.datagrams.pacing import SHARE
from mininet_topos.demo.mix import MixRequest, ServedRequest
from mininet_topos.replay.translating import failure_of, outcome_of, payload_gbps, requests_of
from mininet_topos.topology.plan import LabPlan

SHUFFLE = Shuffle("s", 0.0, (0,), (1,), (1,))


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """Draw a workload with a group in racks 0 and 1, which no folding onto two or more racks brings into one rack."""
    racks = draw(st.integers(2, 40))
    arrivals = sorted(draw(st.lists(st.integers(0, 10**6), min_size=1, max_size=8)))
    multicasts = [TraceMulticast("wide", 0.0, 0, (1,), draw(st.integers(1, 10**12)))]
    for place, arrival in enumerate(arrivals):
        sender, *receivers = draw(st.lists(st.integers(0, racks - 1), min_size=2, max_size=racks, unique=True))
        size = draw(st.integers(1, 10**12))
        multicasts.append(TraceMulticast(str(place), arrival / 1000, sender, tuple(sorted(receivers)), size))
    return Workload(racks, tuple(multicasts), (SHUFFLE,), {"rule": "x"})


factors = st.floats(0.1, 1000)
few_racks = st.integers(2, 8)


@given(workloads(), few_racks, factors, factors)
def test_scaling_folds_groups_and_counts_those_within_a_rack(
    workload: Workload, racks: int, scale: float, speed: float
) -> None:
    small = scaled(workload, racks, scale, speed)
    kept = {one.name: one for one in small.multicasts}
    for one in workload.multicasts:
        members = {rack % racks for rack in (one.sender, *one.receivers)}
        assert (one.name in kept) == (len(members) > 1)
        if one.name in kept:
            folded = kept[one.name]
            assert folded.sender == one.sender % racks
            assert {folded.sender, *folded.receivers} == members
            assert list(folded.receivers) == sorted(members - {folded.sender})
    assert small.rules["within_a_rack"] == len(workload.multicasts) - len(kept)
    assert (small.racks, small.shuffles, small.rules["rule"]) == (racks, (), "x")


@given(workloads(), few_racks, factors, factors)
def test_scaling_divides_bytes_and_keeps_the_order_of_arrivals(
    workload: Workload, racks: int, scale: float, speed: float
) -> None:
    before = {one.name: one for one in workload.multicasts}
    small = scaled(workload, racks, scale, speed).multicasts
    for one in small:
        assert 0 <= one.bytes - before[one.name].bytes / scale <= 1 + 1e-6
        assert one.arrival == pytest.approx(before[one.name].arrival / speed, abs=0.00051)
    names = [one.name for one in workload.multicasts]
    assert [names.index(one.name) for one in small] == sorted(names.index(one.name) for one in small)
    assert [one.arrival for one in small] == sorted(one.arrival for one in small)


@given(workloads(), few_racks, factors, factors)
def test_written_scaled_trace_can_be_read_back(workload: Workload, racks: int, scale: float, speed: float) -> None:
    small = scaled(workload, racks, scale, speed)
    trace = parse_coflows(written(as_coflows(small)).encode(), "again")
    again = derived(trace, "job-broadcast", Volume(measure="maximum"), 0)
    assert (again.racks, again.multicasts) == (small.racks, small.multicasts)
    assert scaled(again, racks, 1.0, 1.0).multicasts == small.multicasts


def test_trace_whose_groups_fold_into_one_rack_is_rejected() -> None:
    work = Workload(8, (TraceMulticast("a", 0.0, 1, (3, 5), 9),), (), {})
    with pytest.raises(InputError, match="within one of 2 racks: fold it onto more"):
        scaled(work, 2, 1.0, 1.0)


def test_first_host_represents_its_rack() -> None:
    plan = LabPlan(racks=4, hosts_per_rack=1)
    work = Workload(4, (TraceMulticast("job/1 of 2", 1.5, 2, (0, 3), 77),), (), {})
    assert requests_of(work, plan, may_pause=True, may_split=False) == [
        MixRequest("replay-0", 1.5, "r3h1", ("r1h1", "r4h1"), 77, True, False)
    ]


def test_results_have_the_simulators_format() -> None:
    work = Workload(
        4, (TraceMulticast("a", 1.0, 2, (0,), 5_000_000), TraceMulticast("b", 2.0, 0, (1,), 5_000_000)), (), {}
    )
    asked = requests_of(work, LabPlan(racks=4), may_pause=True, may_split=True)
    served = [ServedRequest(one, seconds, (), True, 0.001) for one, seconds in zip(asked, (1.0, 2.0), strict=True)]
    row = policy_row("paper", outcome_of(work, served), 40e6)
    assert (row["mean_seconds"], row["mean_slowdown"], row["without_light"]) == (1.5, 1.5, 2)
    assert [one["name"] for one in row["completions"]] == ["a", "b"]


def test_failure_reports_its_reason() -> None:
    asked = MixRequest("a", 0.0, "r1h1", ("r2h1", "r3h1"), 1, True, True)
    outcomes = (
        ReceiverOutcome("r2h1", True, "", 0, None),
        ReceiverOutcome("r3h1", False, "its store is full", 0, None),
    )
    sent = TransferResult("a", 1, 1, "", 0.1, 1, 0, outcomes)
    part = PartSent(0, asked.receivers, PartState.DONE, "", 0, sent)
    assert failure_of(ServedRequest(asked, 1.0, (part,), intact=False)) == "r3h1: its store is full"
    assert failure_of(ServedRequest(asked, 1.0, (), intact=True)) == "some receivers were never granted an optical path"
    assert failure_of(ServedRequest(asked, 1.0, (), intact=False)) == "a copy differs"


def test_payload_rate_is_slightly_below_the_optical_rate() -> None:
    assert 0.99 * SHARE < payload_gbps(LabPlan(light_rate_mbps=1000.0)) < SHARE
    assert payload_gbps(LabPlan(mtu=1500)) < payload_gbps(LabPlan())


# ------------------------------------------------------------------------------------------------ the command


def test_command_writes_a_scaled_trace_without_a_lab(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "scaled"
    assert main(["lab", "replay", "sample", "--first", "5", "--racks", "4", "--write-scaled", str(file)]) == 0
    assert "5 multicasts on 4 racks, bytes 1:250, arrivals 1 times as fast" in capsys.readouterr().err
    assert main(["sim", "replay", str(file), "--volume", "maximum", "--light-gbps", "0.04"]) == 0
    assert "srpt-lease" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["sample", "--policy", "best"], "--policy 'best' is none"),
        (["sample", "--splitters", "4"], "'4' is no number of splitters"),
        (["sample", "--light-rate", "20000"], "light_rate_mbps is 20000"),
        (["nowhere"], "nowhere: No such file"),
    ],
)
def test_invalid_options_are_rejected_in_one_sentence(
    capsys: pytest.CaptureFixture[str], options: list[str], words: str
) -> None:
    assert main(["lab", "replay", *options]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
