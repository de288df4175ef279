"""The comparison of two commits: readings of each era's output, the era of a commit, order, interval and verdict."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.regress.command import DONE, INCOMPLETE, WORSE, exit_status
from benchmarks.regress.comparison import BASE, FAILED, HEAD, MEASURED, Result, coverage, order, table
from benchmarks.regress.eras import ERA_1, ERA_2, ERAS, ROWS, Era, Output, ReadingError, at, era_of

CYCLES = {"cycles_per_second": 284.0, "controller_cpu_ms_per_cycle": 2.5}
CONTROL_PLANE = {"rows": {"cycles": CYCLES}}


def transport_rows(tool: str) -> dict[str, Any]:
    return {"rows": [{"tool": tool, "receivers": count, "gbps": 10.0 / count, "failures": []} for count in (1, 7)]}


SAMPLES: list[tuple[Era, str, Any, float]] = [
    (ERA_1, "cycles", CONTROL_PLANE, 284.0),
    (ERA_1, "cycle-cpu", CONTROL_PLANE, 2.5),
    (ERA_1, "cycle-commands", {"commands": 2.1}, 2.1),
    (ERA_2, "cycles-switch", {"rows": {"switch": CYCLES}}, 284.0),
    (ERA_2, "pass-10000", {"milliseconds": 1757.0}, 1757.0),
    (ERA_1, "grant", {"grant_ms": {"n": 200, "p50": 1.9, "p99": 4.0}}, 1.9),
    (ERA_1, "allocation", [0.5, 0.4, 0.6], 0.5),
    (ERA_1, "event", {"milliseconds": 0.3, "pending": 10_000}, 0.3),
    (ERA_1, "optical-1", transport_rows("optical"), 10.0),
    (ERA_1, "unicast-7", transport_rows("packets"), 10.0 / 7),
    (ERA_1, "flow", [], 12.5),
    (ERA_1, "start-up", {"milliseconds": 80.0}, 80.0),
    (ERA_2, "unicast-7", transport_rows("unicast"), 10.0 / 7),
    (ERA_2, "trees-1", transport_rows("trees"), 10.0),
    (ERA_2, "rack-fabric", {"cells": []}, 12.5),
    (ERA_2, "start-up", {"ms": {"bare interpreter": 12.0, "blast --version": 40.0}}, 40.0),
]


@pytest.mark.parametrize(("era", "row", "document", "reading"), SAMPLES)
def test_era_reads_sample_output_of_its_scripts(era: Era, row: str, document: Any, reading: float) -> None:
    command = era.command_of(row)
    assert command is not None and command.readings[row](Output(document, 12.5)) == reading


@pytest.mark.parametrize("document", [{}, [], {"rows": []}, {"rows": [{"tool": "optical", "receivers": 1, "gbps": 0}]}])
def test_output_without_reading_is_an_error(document: Any) -> None:
    with pytest.raises(ReadingError, match="the output has"):
        at("rows", {"tool": "optical", "receivers": 1}, "gbps")(Output(document, 0.0))


@pytest.mark.parametrize("era", ERAS, ids=lambda era: era.name)
def test_every_row_has_a_command_or_a_reason_in_every_era(era: Era) -> None:
    measured = [row for command in era.commands for row in command.readings]
    assert sorted([*measured, *era.absent]) == sorted(ROWS)


def test_era_is_the_newest_whose_marker_the_commit_has() -> None:
    assert era_of(lambda path: True) is ERAS[0]
    assert era_of(lambda path: path == ERA_1.marker) is ERA_1
    assert era_of(lambda path: False) is None


def test_each_commit_goes_first_in_every_second_pair() -> None:
    assert [order(pair) for pair in range(3)] == [(BASE, HEAD), (HEAD, BASE), (BASE, HEAD)]


@pytest.mark.parametrize(("pairs", "covered"), [(1, 0.0), (2, 0.5), (4, 0.875), (5, 0.9375), (8, 0.9297), (15, 0.9648)])
def test_coverage_is_that_of_the_ranks(pairs: int, covered: float) -> None:
    assert coverage(pairs) == pytest.approx(covered, abs=1e-4)


def result(row: str, base: list[float], head: list[float]) -> Result:
    return Result(ROWS[row], MEASURED, "", {BASE: base, HEAD: head})


def test_ratio_above_one_means_head_is_better_for_rates_and_costs() -> None:
    assert result("cycles", [100.0], [200.0]).ratios == [2.0]
    assert result("grant", [4.0], [2.0]).ratios == [2.0]


@pytest.mark.parametrize(
    ("head", "verdict"),
    [
        ([60.0, 61.0, 62.0, 63.0, 96.0], "worse"),
        ([60.0, 61.0, 62.0, 63.0, 98.0], ""),
        ([104.0, 105.0, 106.0, 107.0, 108.0], "better"),
        ([60.0, 61.0, 62.0, 63.0], "too few pairs"),
    ],
)
def test_row_is_worse_only_if_its_whole_interval_is_below_the_limit(head: list[float], verdict: str) -> None:
    assert result("cycles", [100.0] * len(head), head).verdict == verdict


def test_table_has_ratio_interval_and_every_row_without_reading() -> None:
    lines = table([result("cycles", [284.0], [174.0]), Result(ROWS["trees-1"], reason="needs root")]).splitlines()
    assert lines[1].split() == [
        "cycles",
        "1/s",
        "284",
        "174",
        "0.613",
        "0.613-0.613",
        "0.0%",
        "1",
        "too",
        "few",
        "pairs",
    ]
    assert lines[2] == "trees-1: not measured: needs root"


def test_exit_status_depends_on_worse_and_missing_rows() -> None:
    worse, same = (result("cycles", [100.0] * 5, [head] * 5) for head in (60.0, 100.0))
    failed, absent = Result(ROWS["flow"], FAILED, "exit status 1"), Result(ROWS["trees-1"], reason="needs root")
    assert exit_status([same, absent], named=False) == DONE
    assert exit_status([same, absent], named=True) == INCOMPLETE
    assert exit_status([same, failed], named=False) == INCOMPLETE
    assert exit_status([worse, failed], named=False) == WORSE
