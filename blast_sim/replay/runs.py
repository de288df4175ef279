"""One run for each policy, side by side on several cores."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing.sharedctypes import Synchronized

from blast_sim.replay.player import Player
from blast_sim.replay.result import Row, policy_row
from blast_sim.replay.setting import Setting
from blast_sim.traces.workload import Workload

LOOK_SECONDS = 0.2

_ended: Synchronized[int] | None = None
"""In a worker process: how many multicasts and shuffles have ended in all of them."""


@dataclass(frozen=True, slots=True)
class Run:
    """A workload where, and under which policy."""

    workload: Workload
    setting: Setting
    policy: str


@dataclass(frozen=True, slots=True)
class Ran:
    """Its row of the results, which repeats bit for bit, and the CPU seconds that it took, which do not."""

    row: Row
    cpu_seconds: float


def play(run: Run, heard: Callable[[], None] = lambda: None) -> Ran:
    """One run. Raises Stalled."""
    begun = time.process_time()
    outcome = Player(run.workload, run.setting, run.policy, heard).play()
    spent = time.process_time() - begun
    return Ran(policy_row(run.policy, outcome, run.setting.light.rate_gbps * 1e9), spent)


def play_all(runs: Sequence[Run], processes: int, progress: Callable[[int], object]) -> list[Ran]:
    """All runs, in order; `progress` hears how many more multicasts and shuffles have ended. Raises Stalled."""
    if processes == 1 or len(runs) == 1:
        return [play(run, lambda: _one_more(progress)) for run in runs]
    # Forked children of a process with threads may hang.
    context = multiprocessing.get_context("spawn")
    ended = context.Value("q", 0)
    shown = 0
    with ProcessPoolExecutor(min(processes, len(runs)), context, _begin, (ended,)) as pool:
        futures = [pool.submit(_play_in_worker, run) for run in runs]
        waiting = set(futures)
        while waiting:
            done, waiting = wait(waiting, LOOK_SECONDS, FIRST_COMPLETED)
            now = ended.value
            progress(now - shown)
            shown = now
            for future in done:
                # A run that failed ends all the others.
                future.result()
        return [future.result() for future in futures]


def _one_more(progress: Callable[[int], object]) -> None:
    progress(1)


def _begin(ended: Synchronized[int]) -> None:
    global _ended  # noqa: PLW0603 - what a pool's initialiser is for
    _ended = ended


def _play_in_worker(run: Run) -> Ran:
    assert _ended is not None, "the pool has begun"
    counter = _ended

    def heard() -> None:
        with counter.get_lock():
            counter.value += 1

    return play(run, heard)
