"""One run for each policy, side by side on several cores."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from multiprocessing.sharedctypes import Synchronized

from blast_sim.base.report import Row
from blast_sim.base.worker_processes import computed
from blast_sim.plugins.loading import blamed, plugins_of
from blast_sim.replay.player import Player
from blast_sim.replay.result import policy_row
from blast_sim.replay.setting import Setting
from blast_sim.traces.workload import Workload


@dataclass(frozen=True, slots=True)
class ReplayRun:
    """A workload where, and under which policy."""

    workload: Workload
    setting: Setting
    policy: str


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """Its row of the results, which repeats bit for bit, and the CPU seconds that it took, which do not."""

    row: Row
    cpu_seconds: float


def play(run: ReplayRun, on_end: Callable[[], None] = lambda: None) -> MeasuredRun:
    """Play one run. Raises StalledError, PluginError, PluginFailedError."""
    begun = time.process_time()
    # In a process of its own the policy is not loaded yet.
    with blamed(plugins_of(run.policy)):
        outcome = Player(run.workload, run.setting, run.policy, on_end).play()
    spent = time.process_time() - begun
    return MeasuredRun(policy_row(run.policy, outcome, run.setting.light.rate_gbps * 1e9), spent)


def play_all(runs: Sequence[ReplayRun], processes: int, progress: Callable[[int], object]) -> list[MeasuredRun]:
    """Play all runs, in order; call `progress` with the number of further multicasts and shuffles ended.

    Raises StalledError, PluginError, PluginFailedError, WorkerDiedError.
    """
    if processes == 1 or len(runs) == 1:
        return [play(run, lambda: _one_more(progress)) for run in runs]
    ended = multiprocessing.get_context("spawn").Value("q", 0)
    shown = 0

    def look() -> None:
        nonlocal shown
        now = ended.value
        progress(now - shown)
        shown = now

    # A run that failed ends all the others.
    with closing(computed(partial(_play_in_worker, ended), runs, processes, look)) as coming:
        ran = dict(coming)
    look()
    return [ran[place] for place in range(len(runs))]


def _one_more(progress: Callable[[int], object]) -> None:
    progress(1)


def _play_in_worker(ended: Synchronized[int], run: ReplayRun) -> MeasuredRun:
    def on_end() -> None:
        with ended.get_lock():
            ended.value += 1

    return play(run, on_end)
