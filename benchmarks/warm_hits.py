"""Claim: with a reserve of dark pieces, iterative jobs find their trees lit from the third iteration on where they fit.

Workloads on the simulator's virtual clock, with the controller's own core: `iterative-jobs` (36 jobs of three racks
that ask ten times each, of 120 racks) with as many splitters as it has and with more, and the sample trace, whose
groups do not come back. Each with trees taken down when their transfer is done, kept lit without a reserve, and kept
lit by default. Told are the share of grants that found their light, trees that somebody had to take pieces of, trees
that gave way before, and the mean completion of a multicast. No root:

    .venv/bin/python benchmarks/warm_hits.py
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

from blast_controller.configuration.config import ControllerSection
from blast_controller.core.policy.warm_trees import WarmCounts
from blast_sim.experiments.cell import Effort, cells_of
from blast_sim.experiments.jobs import Run, draw_jobs
from blast_sim.experiments.run import build_method, build_world
from blast_sim.methods.method import Method, World
from blast_sim.methods.optical import Blast
from blast_sim.replay.player import Player
from blast_sim.replay.setting import Setting
from blast_sim.scenarios.loading import find, load
from blast_sim.scenarios.schema import LightSection
from blast_sim.traces.loading import Derivation, load_workload

_DEFAULT = ControllerSection()
WAYS = {
    "taken down": (0, 0.0),
    "kept lit, no reserve": (_DEFAULT.keep_warm_ms, 0.0),
    "kept lit, reserve": (_DEFAULT.keep_warm_ms, _DEFAULT.warm_reserve),
}
"""What becomes of a tree that is done: for how long it is kept (ms), and the share that stays dark."""

RECORDED = "recorded"
SPLITTERS = (6, 12, 36)
"""What the scenario has; a third and all of the jobs."""


@dataclass(frozen=True)
class Row:
    """What came of a workload one way."""

    workload: str
    way: str
    counts: WarmCounts
    mean_seconds: float


@dataclass(frozen=True)
class _Seen(Setting):
    """A setting whose controller can be looked at afterwards."""

    made: list[Blast] = field(default_factory=list)

    def blast(self, world: World, servers: object, policy: str, fallback: Method) -> Blast:
        """The controller at work for these servers."""
        made = Setting.blast(self, world, servers, policy, fallback)  # type: ignore[arg-type]
        self.made.append(made)
        return made


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--quick", action="store_true", help="only the scenario as it is, and 50 multicasts of the trace"
    )
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rows = list(_rows(args.quick))
    if args.json:
        print(json.dumps([_plain(row) for row in rows], indent=2))
        return
    print(f"{'workload':<34}{'trees':<24}{'lit':>6}{'found':>8}{'taken over':>12}{'gave way':>10}{'mean s':>10}")
    for row in rows:
        counts = row.counts
        print(
            f"{row.workload:<34}{row.way:<24}{counts.lit:>6}{counts.hits / counts.lit:>8.1%}"
            f"{counts.taken_over:>12}{counts.gave_way:>10}{row.mean_seconds:>10.4f}"
        )


def _plain(row: Row) -> dict[str, object]:
    counts = row.counts
    return {
        "workload": row.workload,
        "way": row.way,
        "given_light": counts.lit,
        "found_lit": counts.hits,
        "taken_over": counts.taken_over,
        "gave_way": counts.gave_way,
        "mean_seconds": row.mean_seconds,
    }


def _rows(quick: bool) -> Iterator[Row]:
    for splitters in SPLITTERS[: 1 if quick else None]:
        for way, kept in WAYS.items():
            yield _jobs(splitters, way, *kept)
            sys.stderr.write(".")
    for way, kept in WAYS.items():
        yield _trace(50 if quick else None, way, *kept)
        sys.stderr.write(".")
    sys.stderr.write("\n")


def _jobs(splitters: int, way: str, keep_warm_ms: int, reserve: float) -> Row:
    set_to = {"light.splitters": splitters, "light.keep_warm_ms": keep_warm_ms, "light.warm_reserve": reserve}
    scenario = load(find("iterative-jobs"), set_to)
    cell = next(c for c in cells_of(scenario, [0], Effort(RECORDED)) if c.method == "blast")
    world = build_world(cell)
    jobs = draw_jobs(scenario.jobs, world.network, cell.seed)
    blast = build_method(cell, world, dict.fromkeys(server for job in jobs for server in job.servers), 1)
    assert isinstance(blast, Blast), "the cell of this method"
    left = {job.name for job in jobs}
    runs = [Run(job, world, blast, random.Random(job.name), lambda name=job.name: left.discard(name)) for job in jobs]  # type: ignore[misc]
    for run in runs:
        run.next_iteration()
    world.simulation.run(lambda: not left)
    multicasts = sum(section.count * section.iterations for section in scenario.jobs)
    mean = sum(run.times.multicast for run in runs) / multicasts
    return Row(f"iterative-jobs, {splitters} splitters", way, blast.driver.core.view.warm_counts, mean)


def _trace(first: int | None, way: str, keep_warm_ms: int, reserve: float) -> Row:
    workload = load_workload("sample", "coflow", Derivation(first=first))
    light = LightSection(
        splitters=workload.racks // 3, may_pause=True, may_split=True, keep_warm_ms=keep_warm_ms, warm_reserve=reserve
    )
    setting = _Seen(workload.racks, 40, 10.0, 40.0, light, RECORDED)
    outcome = Player(workload, setting, "srpt-lease", lambda: None).play()
    (blast,) = setting.made
    mean = statistics.fmean(one.seconds for one in outcome.multicasts)
    return Row(f"sample trace, {len(outcome.multicasts)} multicasts", way, blast.driver.core.view.warm_counts, mean)


if __name__ == "__main__":
    main()
