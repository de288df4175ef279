"""What iterative jobs get of shared light: multicasts a second, how long each waits for it, how much of it is used.

Measured between a third of the time and the moment when the first job is complete: at the beginning all ask at once,
and at the end some ask no more.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from algorithms.splitter_tree import splitters_needed
from blast_sim.base.percentiles import percentile
from blast_sim.base.report import Row
from blast_sim.experiments.cell import Cell
from blast_sim.experiments.groups import MEGABYTE
from blast_sim.scenarios.schema import JobSection

WARM_UP = 1 / 3
"""The share of the time that is left out."""


@dataclass(frozen=True, slots=True)
class Round:
    """A multicast of a job: when it was wanted, and when all workers had it (seconds)."""

    wanted: float
    arrived: float


@dataclass(frozen=True, slots=True)
class Light:
    """What a round takes: `service` seconds at the rate of light, and this share of all splitters meanwhile."""

    service: float
    share: float


def light_of(section: JobSection, cell: Cell) -> Light:
    """What a multicast of these jobs takes; no splitters where they send otherwise."""
    light = cell.scenario.light
    service = 8.0 * MEGABYTE * section.megabytes / (light.rate_gbps * 1e9)
    splitters = splitters_needed(section.racks, light.fan_out) if cell.method == "blast" else 0
    return Light(service, splitters / max(1, light.splitters))


def rates(rounds: Sequence[Round], until: float, light: Light) -> Row:
    """The columns of jobs that were all at work `until` then."""
    begin = until * WARM_UP
    ended = [one for one in rounds if begin <= one.arrived < until]
    waits = [one.arrived - one.wanted - light.service for one in ended]
    lit = [min(one.arrived, until) - max(one.arrived - light.service, begin) for one in rounds]
    return {
        "multicasts_per_second": len(ended) / (until - begin),
        "wait_seconds": statistics.fmean(waits) if waits else 0.0,
        "wait_p99_seconds": percentile(waits, 99) if waits else 0.0,
        "splitter_use": light.share * sum(seconds for seconds in lit if seconds > 0) / (until - begin),
    }
