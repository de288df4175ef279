"""The coflow format, the rules that derive multicasts from shuffles, and the published trace if available."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import blast_sim.traces
from blast_sim.base.wrong_input import InputError
from blast_sim.traces.coflow_file import Coflow, CoflowTrace, parse_coflows, read_coflows, written
from blast_sim.traces.deriving import Volume, derived, first, repeated, whole_bytes
from blast_sim.traces.loading import Derivation, load_workload
from blast_sim.traces.synthetic import CONTENDED, SAMPLE_FILE, sample, synthetic
from blast_sim.traces.workload import MEGABYTE, Shuffle, TraceMulticast

PUBLISHED = Path(__file__).parents[3].parent / "shared" / "data" / "FB2010-1Hr-150-0.txt"
SMALL = "4 3\n1 0 2 0 1 2 1:8.0 2:2\n2 1500 1 3 3 0:1.0 1:5.5 3:9\n7 1500 1 2 1 2:4.0\n"


def test_parser_reads_a_small_trace() -> None:
    trace = parse_coflows(SMALL.encode(), "small")
    assert trace == CoflowTrace(
        4,
        (
            Coflow("1", 0, (0, 1), (1, 2), (8.0, 2.0)),
            Coflow("2", 1500, (3,), (0, 1, 3), (1.0, 5.5, 9.0)),
            Coflow("7", 1500, (2,), (2,), (4.0,)),
        ),
    )


@st.composite
def traces(draw: st.DrawFn) -> CoflowTrace:
    racks = draw(st.integers(1, 30))
    sides = st.lists(st.integers(0, racks - 1), min_size=1, max_size=10, unique=True)
    arrivals = sorted(draw(st.lists(st.integers(0, 10**9), max_size=6)))
    coflows = []
    for number, arrival in enumerate(arrivals):
        reducers = draw(sides)
        sizes = draw(st.lists(st.floats(1e-3, 1e9), min_size=len(reducers), max_size=len(reducers)))
        coflows.append(Coflow(str(number), arrival, tuple(draw(sides)), tuple(reducers), tuple(sizes)))
    return CoflowTrace(racks, tuple(coflows))


@given(traces())
def test_written_trace_can_be_read_back(trace: CoflowTrace) -> None:
    assert parse_coflows(written(trace).encode(), "again") == trace


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("", "t:1", "empty"),
        ("4\n", "t:1", "number of coflows"),
        ("x 1\n", "t:1", "number of racks must be a whole number"),
        ("4 2\n1 0 1 0 1 1:1\n", "t:1", "announces 2 coflows, but 1 lines follow"),
        ("4 1 9\n1 0 1 0 1 1:1\n", "t:1", "end before '9'"),
        ("4 1\n1 0 1 4 1 1:1\n", "t:2", "racks count from 0"),
        ("4 1\n1 0 1 0 1 1\n", "t:2", "RACK:MEGABYTES"),
        ("4 1\n1 0 1 0 1 1:1_0\n", "t:2", "above 0"),
        ("4 1\n1 0 2 0 0 1 1:1\n", "t:2", "rack 0 is there twice among the mappers"),
        ("4 1\n1 0 1 0 2 1:1 1:2\n", "t:2", "rack 1 is there twice among the reducers"),
        ("4 1\n1 0 1 0 2 1:1\n", "t:2", "ends where its reducer should be"),
        ("4 1\n1 -5 1 0 1 1:1\n", "t:2", "arrival in ms"),
        ("4 1\n1 0 1 0 1 1:1 2:2\n", "t:2", "end before '2:2'"),
        ("4 2\n1 5 1 0 1 1:1\n2 4 1 0 1 1:1\n", "t:3", "before that of the line above"),
        ("4 2\n1 5 1 0 1 1:1\n1 6 1 0 1 1:1\n", "t:3", "there twice"),
        ("4 1\n1 0 1 0 1 1:1é\n", "t:2", "ASCII"),
    ],
)
def test_error_in_a_trace_names_file_and_line(text: str, place: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_coflows(text.encode(), "t")
    assert str(caught.value).startswith(f"{place}: ")
    assert words in str(caught.value)


def test_every_job_broadcasts_to_its_racks_before_its_shuffle() -> None:
    workload = derived(parse_coflows(SMALL.encode(), "small"), "job-broadcast", Volume(), 3)
    one, two = workload.multicasts
    assert one.sender in (0, 1)
    assert {one.sender, *one.receivers} == {0, 1, 2}
    assert two == TraceMulticast("2", 1.5, 3, (0, 1), 300_000_000)
    assert workload.shuffles == (
        Shuffle("1", 0.0, (0, 1), (1, 2), (8_000_000, 2_000_000), after="1"),
        Shuffle("2", 1.5, (3,), (0, 1, 3), (1_000_000, 5_500_000, 9_000_000), after="2"),
        Shuffle("7", 1.5, (2,), (2,), (4_000_000,)),
    )
    assert workload.rules == {"rule": "job-broadcast", "volume": "300 MB", "seed": 3}


def test_sender_depends_only_on_seed_and_name() -> None:
    trace = synthetic(2, 20, 40)
    same, again, other = (derived(trace, "job-broadcast", Volume(), seed).multicasts for seed in (1, 1, 2))
    assert same == again
    assert [one.sender for one in same] != [one.sender for one in other]
    fewer = derived(CoflowTrace(20, trace.coflows[10:]), "job-broadcast", Volume(), 1).multicasts
    assert fewer == same[-len(fewer) :]


@pytest.mark.parametrize(("volume", "size"), [(Volume(2.5), 2_500_000), (Volume(measure="median"), 5_500_000)])
def test_first_keeps_multicasts_with_their_shuffles_and_volume(volume: Volume, size: int) -> None:
    workload = derived(parse_coflows(SMALL.encode(), "small"), "job-broadcast", volume, 0)
    assert workload.multicasts[1].bytes == size
    kept = first(workload, 1)
    assert [one.name for one in kept.multicasts] == [one.name for one in kept.shuffles] == ["1"]


def test_one_to_many_rule_converts_coflows_of_one_mapper() -> None:
    workload = derived(parse_coflows(SMALL.encode(), "small"), "one-to-many", Volume(measure="maximum"), 0)
    assert workload.multicasts == (TraceMulticast("2", 1.5, 3, (0, 1), 9_000_000),)
    assert [shuffle.name for shuffle in workload.shuffles] == ["1", "7"]


def test_iterations_repeat_multicasts_only() -> None:
    once = derived(parse_coflows(SMALL.encode(), "small"), "job-broadcast", Volume(), 0)
    often = repeated(once, 3, 1.0)
    assert [(one.name, one.arrival) for one in often.multicasts] == [
        ("1/0", 0.0), ("1/1", 1.0), ("2/0", 1.5), ("1/2", 2.0), ("2/1", 2.5), ("2/2", 3.5)
    ]  # fmt: skip
    assert [shuffle.after for shuffle in often.shuffles] == ["1/0", "2/0", None]
    assert often.rules["iterations"] == 3


def test_shipped_sample_equals_its_synthetic_trace() -> None:
    assert sample() == synthetic(1, 40, 60)
    assert sample(CONTENDED) == synthetic(1, 40, 200, 70.0)
    shipped = Path(blast_sim.traces.__file__).with_name(SAMPLE_FILE)
    assert read_coflows(shipped) == sample()
    assert written(sample()).encode() == shipped.read_bytes()


def test_load_workload_accepts_a_name_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "small").write_text(SMALL)
    workload = load_workload(str(tmp_path / "small"), "coflow", Derivation(iterations=2, period=9.0, first=1))
    assert [one.arrival for one in workload.multicasts] == [0.0, 9.0]
    assert load_workload("sample", "coflow", Derivation()).racks == 40


def test_trace_without_multicasts_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "local").write_text("4 1\n1 0 1 2 1 2:5\n")
    with pytest.raises(InputError, match="no multicast by the rule 'job-broadcast'"):
        load_workload(str(tmp_path / "local"), "coflow", Derivation())


@pytest.mark.published
@pytest.mark.skipif(not PUBLISHED.exists(), reason="the published trace is not on this machine")
def test_published_trace_has_the_counts_of_its_authors() -> None:
    """The trace of coflow/coflow-benchmark at 90fc587."""
    digest = hashlib.sha256(PUBLISHED.read_bytes()).hexdigest()
    assert digest == "cdd0d94d26c6ab10ce3634cf6a0f836859578e914de6b6faa980a245237dbc6e"
    published = read_coflows(PUBLISHED)
    coflows = published.coflows
    assert (published.racks, len(coflows)) == (150, 526)
    assert [coflow.name for coflow in coflows] == [str(number) for number in range(1, 527)]
    arrivals = [coflow.arrival_ms for coflow in coflows]
    assert arrivals == sorted(set(arrivals))
    assert (arrivals[0], arrivals[-1]) == (0, 3_629_235)
    assert sum(sum(coflow.megabytes) for coflow in coflows) == 35_533_534
    assert max(max(coflow.megabytes) for coflow in coflows) == 232_145
    assert max(len(coflow.mappers) for coflow in coflows) == 147
    assert max(len(coflow.reducers) for coflow in coflows) == 145
    assert sum(bool(set(coflow.mappers) & set(coflow.reducers)) for coflow in coflows) == 172
    touched = [len(coflow.racks) for coflow in coflows]
    assert sum(count >= 3 for count in touched) == 401 and sum(3 <= count <= 14 for count in touched) == 181
    assert (touched.count(2), touched.count(1)) == (122, 3)
    assert written(published).split() == PUBLISHED.read_text().split()
    assert len(derived(published, "job-broadcast", Volume(), 0).multicasts) == 523
    assert sum(len(coflow.mappers) == 1 for coflow in coflows) == 175
    assert len(derived(published, "one-to-many", Volume(), 0).multicasts) == 52


@given(st.integers(1, 10**15))
def test_whole_bytes_survive_their_notation_in_megabytes(size: int) -> None:
    assert whole_bytes(float(str(size / MEGABYTE))) == size


def test_fractions_of_a_byte_are_rounded_up() -> None:
    assert [whole_bytes(size) for size in (1.1, 1.0000004, 1e-7)] == [1_100_000, 1_000_001, 1]
