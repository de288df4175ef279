"""The measurements as a table and as JSON."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict

from blast_sim.base.text import table
from mininet_topos.spark.printed import distance
from mininet_topos.spark.trials import ALONE, SparkTrial
from mininet_topos.topology.plan import LabPlan

_HEADER = (
    "EXAMPLE", "WAY", "RUNS", "ITERATIONS", "S EACH", "MB EACH", "S IN ALL", "UPLINK COPIES", "FETCHED",
    "IDLE", "RESULTS"
)  # fmt: skip
_LEGEND = """
ITERATIONS: number per run. S EACH and MB EACH exclude the first iteration, which includes start-up: median time, and
minimum megabytes broadcast. UPLINK COPIES: traffic of the driver's host divided by the broadcast data. FETCHED: share
of the executors' data that Spark fetched itself over the packet network. IDLE: share of idle CPU time. RESULTS: printed
numbers compared with runs of Spark alone: the same, or the relative distance to the nearest of them; for those runs,
the distance between them."""


def as_text(plan: LabPlan, trials: Sequence[SparkTrial]) -> str:
    """Return a table with a line for each example and way."""
    groups = _groups(trials)
    return f"{plan.summary}\n\n{table(_HEADER, [_line(group, trials) for group in groups])}\n{_LEGEND}\n"


def as_json(plan: LabPlan, trials: Sequence[SparkTrial]) -> dict[str, object]:
    """Return all data of every run."""
    return {
        "format": 1,
        "lab": asdict(plan),
        "runs": [
            {
                **{key: value for key, value in asdict(trial).items() if key != "printed"},
                "digest": trial.printed.digest,
                "results": _results(_apart(trial, trials)),
                "iteration_seconds": trial.iteration_seconds,
                "iteration_bytes": trial.iteration_bytes,
                "uplink_copies": trial.uplink_copies,
            }
            for trial in trials
        ],
    }


def _groups(trials: Sequence[SparkTrial]) -> list[list[SparkTrial]]:
    keys = dict.fromkeys((trial.example, trial.way) for trial in sorted(trials, key=lambda one: one.pair))
    by_example = sorted(keys, key=lambda key: [trial.example for trial in trials].index(key[0]))
    return [[one for one in trials if (one.example, one.way) == key] for key in by_example]


def _line(group: Sequence[SparkTrial], trials: Sequence[SparkTrial]) -> list[str]:
    apart = [distance for one in group if (distance := _apart(one, trials)) is not None]
    seconds = [one.iteration_seconds for one in group if one.iteration_seconds is not None]
    sizes = [one.iteration_bytes for one in group if one.iteration_bytes is not None]
    needed = sum(one.broadcast_bytes * one.executors for one in group)
    return [
        group[0].example,
        group[0].way,
        str(len(group)),
        _range([len(one.iterations) for one in group]),
        f"{statistics.median(seconds):.1f}" if seconds else "-",
        f"{min(sizes) / 1e6:.1f}" if sizes else "-",
        f"{statistics.median(one.seconds for one in group):.1f}",
        f"{statistics.median(one.uplink_copies for one in group):.2f}",
        f"{sum(one.remote_bytes for one in group) / max(1, needed):.0%}",
        f"{statistics.mean(one.idle for one in group):.0%}",
        _results(max(apart, default=None)) or "-",
    ]


def _apart(trial: SparkTrial, trials: Sequence[SparkTrial]) -> float | None:
    """Return the distance of its results from those of Spark alone: the nearest, or, for one of those, the furthest."""
    alone = [one for one in trials if one.example == trial.example and one.way == ALONE and one is not trial]
    distances = [distance(trial.printed, one.printed) for one in alone]
    choose = max if trial.way == ALONE else min
    return choose(distances, default=None)


def _results(apart: float | None) -> str | None:
    """Describe a distance of results; None if there was nothing to compare with."""
    if apart is None:
        return None
    return "other" if apart == math.inf else f"{apart:.0e} off" if apart else "the same"


def _range(values: Sequence[int]) -> str:
    minimum, maximum = min(values), max(values)
    return str(minimum) if minimum == maximum else f"{minimum}-{maximum}"
