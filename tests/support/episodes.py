"""Many episodes of a random machine, shared among processes, each with a seed of its own: a failure names its command.

At the end comes a table of how often each fault met each phase.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

MOST_BYTES = 2 << 30
"""What an episode may take of memory."""
CHUNK, TOLD_EVERY = 5, 500
Counts = Counter[tuple[str, str]]


class Played(Protocol):
    """What an episode tells: its seed, which fault met which phase, and how it failed if it did."""

    @property
    def seed(self) -> int: ...
    @property
    def counts(self) -> Counts: ...
    @property
    def failure(self) -> str | None: ...


P = TypeVar("P", bound=Played)


def arguments(module: str, about: str | None) -> argparse.ArgumentParser:
    """What every such program takes."""
    program = f"python -m {module}"
    parser = argparse.ArgumentParser(prog=program, description=about)
    parser.set_defaults(program=program)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so much time at the latest")
    parser.add_argument("--seed", type=int, default=0, help="of the first episode")
    parser.add_argument("--jobs", type=int, default=1, help="processes to share the work")
    parser.add_argument("--trace", action="store_true", help="play one episode and print all that happens")
    return parser


def played(play: Callable[[int], P], episodes: int, options: argparse.Namespace) -> Iterator[P]:
    """Every episode as it ends; how it goes on is told on standard error, what fails on standard output."""
    started, failures = time.monotonic(), 0
    with multiprocessing.Pool(options.jobs, bound_episodes) as pool:
        seeds = range(options.seed, options.seed + episodes)
        for number, one in enumerate(pool.imap_unordered(play, seeds, chunksize=CHUNK), 1):
            if one.failure:
                failures += 1
                print(f"{one.failure}\nfailed: {options.program} --trace --seed {one.seed}", flush=True)
            if number % TOLD_EVERY == 0:
                print(f"{number} of {episodes} episodes, {failures} failures", file=sys.stderr, flush=True)
            yield one
            if time.monotonic() - started > options.seconds:
                return


class Endless(Exception):
    """An episode takes so long that the controller must be going round in circles."""


def bound_episodes() -> None:
    """Let an episode that has no end fail by itself, before it takes the machine with it."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    signal.signal(signal.SIGALRM, _ring)


def _ring(_number: int, _frame: object) -> None:
    raise Endless


def table(counts: Counts) -> str:
    """The counts as faults by phases."""
    phases = sorted({phase for phase, _ in counts})
    faults = sorted({fault for _, fault in counts})
    width = max(map(len, faults), default=0)
    heads = [phase.replace("reservation ", "r ").replace("part ", "p ") for phase in phases]
    lines = [" " * width + "".join(f" {head:>13}" for head in heads)]
    lines += [f"{fault:<{width}}" + "".join(f" {counts[p, fault] or '-':>13}" for p in phases) for fault in faults]
    return "\n".join(lines)
