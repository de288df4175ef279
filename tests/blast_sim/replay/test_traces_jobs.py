"""Job tables of Philly and Alibaba, and the racks of their machines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from blast_sim.base.wrong_input import InputError
from blast_sim.traces.alibaba import COLUMNS, parse_alibaba
from blast_sim.traces.deriving import Volume
from blast_sim.traces.jobs import JobTable, TraceJob, racks_of, workload_of
from blast_sim.traces.loading import Derivation, load_workload
from blast_sim.traces.philly import parse_philly


def attempt(start: object, *servers: str) -> dict[str, Any]:
    return {"start_time": start, "end_time": None, "detail": [{"ip": name, "gpus": ["gpu0"]} for name in servers]}


def log(*attempts: object, name: object = "application_1") -> bytes:
    return json.dumps([{"status": "Pass", "vc": "a", "user": "b", "jobid": name, "attempts": attempts}]).encode()


PHILLY = [
    {"jobid": "one", "attempts": [attempt("2017-10-07 01:12:09", "m47"), attempt("2017-10-07 01:13:30", "m3", "m12")]},
    {"jobid": "two", "attempts": [attempt("2017-10-07 01:12:30", "m1", "m2", "m1"), attempt(None, "m1", "m2")]},
    {"jobid": "three", "attempts": []},
    {"jobid": "four"},
    {"jobid": "five", "attempts": [attempt("None", "m1", "m2")]},
]


def test_attempts_on_several_servers_are_jobs() -> None:
    table = parse_philly(json.dumps(PHILLY).encode(), "log")
    assert table.jobs == (TraceJob("two/0", 0.0, ("m1", "m2")), TraceJob("one/1", 60.0, ("m3", "m12")))
    assert table.left_out == 2


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{", "this is no JSON"),
        (b"[" * 100_000, "nested too deep"),
        (b"{}", "must be a list"),
        (b"[3]", "job 1 must be an object"),
        (b"[{}]", "job 1 has no jobid"),
        (log(name=5), "no jobid"),
        (log(4), "attempt 0 must be an object"),
        (log(attempt("yesterday", "m1")), "start_time must be like 2017-10-07 01:12:09, not 'yesterday'"),
        (log(attempt("2017-10-07 01:12:09", "")), "must have an ip"),
        (log({"start_time": "2017-10-07 01:12:09", "detail": 3}), "detail must be a list"),
    ],
)
def test_malformed_philly_logs_are_rejected(data: bytes, words: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_philly(data, "log")
    assert str(caught.value).startswith("log: ")
    assert words in str(caught.value)


ROWS = [
    "j1,worker,i1,w1,x1,Terminated,100.5,200,m1",
    "j1,worker,i2,w2,x2,Terminated,99.5,200,m2",
    "j2,ps,i3,w3,x3,Running,50,,m9",
    "j1,worker,i4,w4,x4,Failed,,200,m3",
    "j3,worker,i5,w5,x5,Terminated,120,200,m4",
    "j3,worker,i6,w6,x6,Terminated,120,200,",
    "j4,worker,i7,w7,x7,Terminated,120.5,200,m10",
    "j4,worker,i8,w8,x8,Terminated,121,200,m9",
]


def lines(*rows: str) -> list[str]:
    return [row + "\n" for row in rows]


@pytest.mark.parametrize("header", [(), (",".join(COLUMNS),)])
def test_machines_of_a_job_form_a_group_at_its_first_start(header: tuple[str, ...]) -> None:
    table = parse_alibaba(lines(*header, *ROWS), "table")
    assert table.jobs == (TraceJob("j1", 0.0, ("m1", "m2")), TraceJob("j4", 21.0, ("m10", "m9")))
    assert table.left_out == 2
    by_name = parse_alibaba(lines("machine,start_time,job_name", "b,2,x", "a,1,x"), "table")
    assert by_name.jobs == (TraceJob("x", 0.0, ("b", "a")),)


@pytest.mark.parametrize(
    ("rows", "place", "words"),
    [
        (["job_name,machine"], "t:1", "no column start_time"),
        ([*ROWS, "j,w"], "t:9", "a row has 2 columns, not 9"),
        (["j1,w,i,w,x,S,soon,1,m"], "t:1", "start_time must be a number of seconds, not 'soon'"),
        ([",w,i,w,x,S,1,1,m"], "t:1", "job_name is empty"),
        (['"j1'], "t:1", "no CSV"),
    ],
)
def test_error_in_an_alibaba_table_names_file_and_line(rows: list[str], place: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_alibaba(lines(*rows), "t")
    assert str(caught.value).startswith(f"{place}: ")
    assert words in str(caught.value)


def test_neighbors_by_name_share_a_rack() -> None:
    place = racks_of([f"m{number}" for number in range(100)], 40, "sorted")
    assert [place[f"m{number}"] for number in (0, 9, 10, 39, 40, 79, 80, 99)] == [0, 0, 0, 0, 1, 1, 2, 2]


def test_hashed_placement_is_even_and_independent_of_order() -> None:
    names = [f"m{number}" for number in range(400)]
    place = racks_of(names, 40, "hash")
    assert set(place.values()) == set(range(10))
    assert racks_of(reversed(names), 40, "hash") == place


def test_jobs_in_several_racks_are_multicasts() -> None:
    table = JobTable.of([TraceJob("a", 7.0, ("m0", "m1")), TraceJob("b", 9.0, ("m0", "m2", "m3", "m4"))], 5)
    workload = workload_of(table, 2, "sorted", Volume(10.0), 0)
    (only,) = workload.multicasts
    assert (only.name, only.arrival, only.bytes) == ("b", 2.0, 10_000_000)
    assert {only.sender, *only.receivers} == {0, 1, 2}
    assert workload.racks == 3
    assert workload.rules["left_out"] == 5


def test_job_tables_are_loaded_from_files(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(json.dumps(PHILLY))
    (tmp_path / "table").write_text("\n".join(ROWS))
    how = Derivation(machines_per_rack=1)
    assert len(load_workload(str(tmp_path / "log"), "philly", how).multicasts) == 2
    assert len(load_workload(str(tmp_path / "table"), "alibaba", how).multicasts) == 2
    with pytest.raises(InputError, match="job tables hold no sizes"):
        load_workload(str(tmp_path / "log"), "philly", Derivation(volume=Volume(measure="median")))
    (tmp_path / "table").write_bytes(b"\x1f\x8b\x08\xff\xfe\x00")
    with pytest.raises(InputError, match="unpacked"):
        load_workload(str(tmp_path / "table"), "alibaba", Derivation())
