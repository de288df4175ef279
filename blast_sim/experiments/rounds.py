"""Optical use of iterative jobs: multicasts per second, waiting time, and utilization.

Measured between a third of the time and the completion of the first job: at the beginning all jobs submit at once, and
at the end some have finished.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from algorithms.splitter_tree import splitters_needed
from blast_sim.base.percentiles import percentile
from blast_sim.base.report import Row
from blast_sim.experiments.cell import FlowCell
from blast_sim.experiments.groups import MEGABYTE
from blast_sim.scenarios.schema import JobSection

WARM_UP = 1 / 3
"""The share of the time that is left out."""


@dataclass(frozen=True, slots=True)
class JobRound:
    """A multicast of a job: its submission, and its arrival at all workers (seconds)."""

    submitted: float
    arrived: float


@dataclass(frozen=True, slots=True)
class OpticalShare:
    """The resources of a round: `service` seconds at the optical rate, and its share of all splitters."""

    service: float
    share: float


def light_of(section: JobSection, cell: FlowCell) -> OpticalShare:
    """Return the resources of a multicast of these jobs; no splitters for packet methods."""
    light = cell.scenario.light
    service = 8.0 * MEGABYTE * section.megabytes / (light.rate_gbps * 1e9)
    splitters = splitters_needed(section.racks, light.fan_out) if cell.method == "blast" else 0
    return OpticalShare(service, splitters / max(1, light.splitters))


def rates(rounds: Sequence[JobRound], until: float, light: OpticalShare) -> Row:
    """Return the optical columns of jobs that all ran from 0 to `until` (seconds)."""
    begin = until * WARM_UP
    ended = [one for one in rounds if begin <= one.arrived < until]
    waits = [one.arrived - one.submitted - light.service for one in ended]
    lit = [min(one.arrived, until) - max(one.arrived - light.service, begin) for one in rounds]
    return {
        "multicasts_per_second": len(ended) / (until - begin),
        "wait_seconds": statistics.fmean(waits) if waits else 0.0,
        "wait_p99_seconds": percentile(waits, 99) if waits else 0.0,
        "splitter_use": light.share * sum(seconds for seconds in lit if seconds > 0) / (until - begin),
    }
