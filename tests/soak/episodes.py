"""Many episodes of a random machine, shared among processes, each with a seed of its own."""

from __future__ import annotations

import multiprocessing
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

_MAX_BYTES = 2 << 30
"""Memory of one episode."""
_CHUNK, _PROGRESS_EVERY = 5, 500
Counts = Counter[tuple[str, str]]


@dataclass(frozen=True)
class Effort:
    """The size of one soak: the number of units (steps, rounds, inputs) from a seed on, and the number of processes.

    It ends before `deadline` (monotonic clock). `command` runs this soak again.
    """

    units: int
    seed: int
    jobs: int
    deadline: float
    command: str


class Played(Protocol):
    """An episode's seed, which fault met which phase how often, and how the episode failed if it did."""

    @property
    def seed(self) -> int: ...
    @property
    def counts(self) -> Counts: ...
    @property
    def failure(self) -> str | None: ...


P = TypeVar("P", bound=Played)


def played(play: Callable[[int], P], seeds: range, effort: Effort) -> Iterator[P]:
    """Yield every episode as it ends; print progress to standard error and failures to standard output."""
    failures = 0
    with multiprocessing.Pool(effort.jobs, bound_episodes) as pool:
        for number, one in enumerate(pool.imap_unordered(play, seeds, chunksize=_CHUNK), 1):
            if one.failure:
                failures += 1
                print(f"{one.failure}\nfailed: {effort.command} --trace --seed {one.seed}", flush=True)
            if number % _PROGRESS_EVERY == 0:
                print(f"{number} of {len(seeds)} episodes, {failures} failures", file=sys.stderr, flush=True)
            yield one
            if time.monotonic() > effort.deadline:
                return


class EndlessEpisodeError(Exception):
    """An episode takes so long that the controller must be going round in circles."""


def bound_episodes() -> None:
    """Let an episode that has no end fail by itself, before it takes the machine with it."""
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_BYTES, _MAX_BYTES))
    signal.signal(signal.SIGALRM, _ring)


def _ring(_number: int, _frame: object) -> None:
    raise EndlessEpisodeError


def table(counts: Counts) -> str:
    """Return the counts as a table of faults by phases."""
    phases = sorted({phase for phase, _ in counts})
    faults = sorted({fault for _, fault in counts})
    width = max(map(len, faults), default=0)
    heads = [phase.replace("reservation ", "r ").replace("part ", "p ") for phase in phases]
    lines = [" " * width + "".join(f" {head:>13}" for head in heads)]
    lines += [f"{fault:<{width}}" + "".join(f" {counts[p, fault] or '-':>13}" for p in phases) for fault in faults]
    return "\n".join(lines)
