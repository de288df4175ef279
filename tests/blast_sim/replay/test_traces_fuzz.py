"""Fuzz tests of the readers of traces: a valid trace, or one InputError."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import pytest

from blast_sim.base.wrong_input import InputError
from blast_sim.traces.alibaba import COLUMNS, parse_alibaba
from blast_sim.traces.coflow_file import parse_coflows, written
from blast_sim.traces.deriving import RULES, Volume, derived
from blast_sim.traces.jobs import PLACEMENTS, JobTable, workload_of
from blast_sim.traces.philly import parse_philly
from blast_sim.traces.synthetic import synthetic
from tests.blast_sim.planning.test_network_fuzz import mutation as file_changed
from tests.support.fuzzing import Decoder, fuzz, inputs

COFLOWS = [written(synthetic(seed, 12, 4)) for seed in range(3)]
PHILLY = [
    json.dumps(
        [
            {
                "jobid": "a1",
                "attempts": [
                    {"start_time": "2017-10-07 01:12:09", "detail": [{"ip": "m1", "gpus": []}, {"ip": "m2"}]},
                    {"start_time": None, "detail": []},
                ],
            },
            {"jobid": "a2"},
        ]
    ),
]
ALIBABA = [
    ",".join(COLUMNS) + "\nj1,w,i,x,1,Done,100.5,2,m1\nj1,w,i,x,1,Done,99,2,m2\n",
    "j1,w,i,x,1,Done,100.5,2,m1\nj2,w,i,x,1,Done,,2,m2\nj1,w,i,x,1,Done,7,2,\n",
]
PIECES = [
    "NaN", "inf", "1e999", "-1", "0", "1:1", "0:0.5", " ", "\n", "\r", "\x00", '"', "'", ",", "9" * 400, "1_0", "0x1",
    "\ud7ff", "²", "None", "{}", "[]", "null", "machine", "job_name", "2017-10-07", "999999999",
]  # fmt: skip


def mutation(rng: random.Random, text: str) -> str:
    return file_changed(rng, text, PIECES)


def invented_coflows(rng: random.Random) -> str:
    """Return lines in the right form, with numbers that are often wrong."""

    def number(usual: int) -> str:
        return str(usual) if rng.random() < 0.95 else rng.choice(["-1", "12", "x", "1e3", ""])

    count = rng.randrange(4)
    lines = [f"{number(12)} {number(count)}"]
    for name in range(count):
        mappers, reducers = (rng.sample(range(12), rng.randrange(1, 4)) for _ in range(2))
        fields = [number(name), number(name * 10), number(len(mappers)), *map(number, mappers), number(len(reducers))]
        lines.append(" ".join([*fields, *(f"{number(rack)}:{number(5)}.0" for rack in reducers)]))
    return "\n".join(lines)


def invented_philly(rng: random.Random) -> str:
    """Return JSON in the right form, with values that are often wrong."""

    def value(usual: object) -> object:
        return usual if rng.random() < 0.9 else rng.choice([None, 3, "", "None", [], {}, [3], "2017-13-01 00:00:00"])

    def attempt() -> object:
        servers = [value({"ip": value(f"m{rng.randrange(5)}")}) for _ in range(rng.randrange(4))]
        return value({"start_time": value("2017-10-07 01:12:09"), "detail": value(servers)})

    jobs = [
        value({"jobid": value(f"j{number}"), "attempts": value([attempt() for _ in range(rng.randrange(3))])})
        for number in range(rng.randrange(3))
    ]
    return json.dumps(value(jobs))


def invented_alibaba(rng: random.Random) -> str:
    """Return rows of the table, with fields that are often wrong."""
    rows = [",".join(rng.sample(COLUMNS, len(COLUMNS)))] if rng.random() < 0.5 else []
    for _ in range(rng.randrange(5)):
        fields = [rng.choice(["j1", "j2", "7", "8.5", "m1", "", "m2"]) for _ in COLUMNS]
        rows.append(",".join(fields if rng.random() < 0.9 else fields[:-1]))
    return "\n".join(rows)


def check_coflows(_: random.Random, text: str) -> str:
    """Check that the text yields a trace with valid multicasts and shuffles, or one line with a place."""
    try:
        trace = parse_coflows(text.encode(errors="surrogatepass"), "file")
    except InputError as error:
        return refused(error, "file:")
    for rule in RULES:
        workload = derived(trace, rule, Volume(measure="median"), 0)
        for one in workload.multicasts:
            assert one.bytes > 0
            assert one.sender not in one.receivers
            assert all(0 <= rack < trace.racks for rack in (one.sender, *one.receivers))
        assert all(size > 0 for shuffle in workload.shuffles for size in shuffle.bytes)
    return "a trace"


def check_jobs(parse: Callable[[str], JobTable], text: str) -> str:
    """Check that the text yields jobs with placements, or one line."""
    try:
        table = parse(text)
    except InputError as error:
        return refused(error, "file:")
    assert all(len(set(job.machines)) == len(job.machines) > 1 and job.arrival >= 0 for job in table.jobs)
    for placement in PLACEMENTS:
        workload = workload_of(table, 2, placement, Volume(), 0)
        assert all(0 <= rack < workload.racks for one in workload.multicasts for rack in (one.sender, *one.receivers))
    return "a trace"


def philly(text: str) -> JobTable:
    return parse_philly(text.encode(errors="surrogatepass"), "file")


def alibaba(text: str) -> JobTable:
    return parse_alibaba(text.splitlines(keepends=True), "file")


def refused(error: InputError, place: str) -> str:
    assert str(error).startswith(place)
    assert "\n" not in str(error)
    return "refused"


OURS = ("/coflow_file.py", "/philly.py", "/alibaba.py", "/jobs.py", "/wrong_input.py")
FILES = {
    "coflow": Decoder("coflow", COFLOWS, mutation, invented_coflows, check_coflows, OURS),
    "philly": Decoder("philly", PHILLY, mutation, invented_philly, lambda _, text: check_jobs(philly, text), OURS),
    "alibaba": Decoder("alibaba", ALIBABA, mutation, invented_alibaba, lambda _, text: check_jobs(alibaba, text), OURS),
}


@pytest.mark.parametrize("kind", FILES)
def test_readers_return_a_valid_trace_or_one_sentence(kind: str) -> None:
    run = fuzz(FILES[kind], inputs(1_500))
    assert min(run.outcomes[name] for name in ("a trace", "refused")) > run.inputs // 100
    assert run.mutated * 2 == run.inputs
