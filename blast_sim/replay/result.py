"""Results of a replay: one JSON object, the same from the simulator and from a lab.

    {"provenance": {…}, "format": 1, "made_by": "flow simulator" or "lab", "trace": "…", "rules": {…},
     "network": {…}, "light": {…}, "compute": "…", "shuffles": true,
     "policies": [{"policy": "…", "multicasts": 523, "without_light": 0, "mean_seconds": …, "median_seconds": …,
                   "p95_seconds": …, "p99_seconds": …, "longest_seconds": …, "mean_slowdown": …,
                   "mean_compute_seconds": …, "mean_shuffle_seconds": … or null,
                   "completions": [{"name", "arrival", "sender", "receivers", "bytes", "seconds", "compute_seconds",
                                    "light"}…]}…]}

`seconds` is the time from a request's arrival to its last receiver, including the controller's computation
(`compute_seconds`) and the setting of its devices; slowdown is the ratio to the transfer time at the optical rate
alone. The p-th percentile is the smallest value that p percent of all values do not exceed.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from blast_sim.base.percentiles import percentile
from blast_sim.base.report import Row
from blast_sim.traces.workload import TraceMulticast

FORMAT = 1
"""Of result files; another one is refused."""


@dataclass(frozen=True, slots=True)
class MulticastOutcome:
    """The result of a multicast.

    `seconds` is the time from its arrival to the last receiver, `compute_seconds` the part of the controller's
    computation, and `light` is true if it was granted optical resources at any time.
    """

    request: TraceMulticast
    seconds: float
    compute_seconds: float
    light: bool


@dataclass(frozen=True, slots=True)
class ReplayOutcome:
    """The results of all multicasts in order of arrival, and of shuffles by name (seconds from their start)."""

    multicasts: list[MulticastOutcome]
    shuffles: dict[str, float]


def result(
    made_by: str, trace: str, rules: Mapping[str, object], settings: Mapping[str, object], policies: Sequence[Row]
) -> Row:
    """Return the whole result: its origin, the trace's name and derivation rules, `settings`, and a row per policy."""
    return {
        "format": FORMAT,
        "made_by": made_by,
        "trace": trace,
        "rules": dict(rules),
        **settings,
        "policies": list(policies),
    }


def policy_row(policy: str, outcome: ReplayOutcome, light_rate: float) -> Row:
    """Return the row of a policy; `light_rate` in bit/s."""
    played = outcome.multicasts
    ordered = sorted(one.seconds for one in played)
    shuffles = list(outcome.shuffles.values())
    return {
        "policy": policy,
        "multicasts": len(played),
        "without_light": sum(not one.light for one in played),
        "mean_seconds": statistics.fmean(ordered),
        "median_seconds": percentile(ordered, 50),
        "p95_seconds": percentile(ordered, 95),
        "p99_seconds": percentile(ordered, 99),
        "longest_seconds": ordered[-1],
        "mean_slowdown": statistics.fmean(one.seconds * light_rate / (8 * one.request.bytes) for one in played),
        "mean_compute_seconds": statistics.fmean(one.compute_seconds for one in played),
        "mean_shuffle_seconds": statistics.fmean(shuffles) if shuffles else None,
        "completions": [_completion(one) for one in played],
    }


def _completion(one: MulticastOutcome) -> Row:
    request = one.request
    return {
        "name": request.name,
        "arrival": request.arrival,
        "sender": request.sender,
        "receivers": list(request.receivers),
        "bytes": request.bytes,
        "seconds": one.seconds,
        "compute_seconds": one.compute_seconds,
        "light": one.light,
    }
