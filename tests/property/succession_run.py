"""Many rounds of faults of several controllers: `python -m tests.property.succession_run --rounds 10000 --jobs 2`.

Every episode of some rounds has a seed of its own, so that a failure names the one command that shows it again. At the
end comes a table of how often each fault met each phase.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from tests.property.long_run import bound_episodes, table
from tests.support.succession.faults import FAULTS, Fault
from tests.support.succession.seeded_bugs import BUGS
from tests.support.succession.simulation import Counts, Simulation

ROUNDS = 4
"""Of an episode."""


@dataclass(frozen=True)
class Played:
    """One episode's counts, how many grants its clients had, and how it failed if it did."""

    seed: int
    counts: Counts
    granted: int
    calls: int
    failure: str | None = None


def play(
    seed: int,
    rounds: int = ROUNDS,
    say: Callable[[str], None] = lambda line: None,
    faults: Sequence[Fault] = FAULTS,
) -> Played:
    """An episode whose failure is kept for the report."""
    counts: Counts = Counter()
    simulation = Simulation(seed, counts, say, faults)
    failure = None
    try:
        simulation.play(rounds)
    except Exception:  # noqa: BLE001 every failure is wanted, not only the first
        failure = traceback.format_exc()
    histories = simulation.histories
    return Played(seed, counts, histories.granted, sum(map(len, histories.of.values())), failure)


def course(seed: int) -> list[str]:
    """All that happens in an episode, a line each."""
    lines: list[str] = []
    play(seed, say=lines.append)
    return lines


def is_found(name: str, episodes: int) -> bool:
    """Whether so many episodes find the seeded bug of this name."""
    bug, faults = next((bug, faults) for bug, faults in BUGS.items() if bug.__name__ == name)
    with pytest.MonkeyPatch.context() as patch:
        bug(patch)
        return any(play(seed, faults=faults).failure is not None for seed in range(episodes))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so much time at the latest")
    parser.add_argument("--seed", type=int, default=0, help="of the first episode")
    parser.add_argument("--jobs", type=int, default=1, help="processes to share the work")
    parser.add_argument("--trace", action="store_true", help="play one episode and print all that happens")
    parser.add_argument("--seeded-bug", choices=[bug.__name__ for bug in BUGS], help="look whether this one is found")
    options = parser.parse_args()
    if options.seeded_bug:
        found = is_found(options.seeded_bug, -(-options.rounds // ROUNDS))
        print(f"{options.seeded_bug}: {'found' if found else 'not found'}")
        return 0 if found else 1
    if options.trace:
        played = play(options.seed, say=lambda line: print(line, flush=True))
        print(played.failure or "no failure")
        return 1 if played.failure else 0
    counts: Counts = Counter()
    started, rounds, granted, calls, failures = time.monotonic(), 0, 0, 0, 0
    seeds = range(options.seed, options.seed + -(-options.rounds // ROUNDS))
    with multiprocessing.Pool(options.jobs, bound_episodes) as pool:
        for played in pool.imap_unordered(play, seeds, chunksize=5):
            rounds += ROUNDS
            counts += played.counts
            granted, calls = granted + played.granted, calls + played.calls
            if played.failure:
                failures += 1
                print(played.failure)
                print(f"failed: python -m tests.property.succession_run --trace --seed {played.seed}", flush=True)
            if rounds % (100 * ROUNDS) == 0:
                print(f"{rounds} rounds, {failures} failures", file=sys.stderr, flush=True)
            if time.monotonic() - started > options.seconds:
                break
    took = time.monotonic() - started
    print(f"{rounds} rounds of faults, {granted} grants, {calls} calls checked, {took:.0f} s, {failures} failures")
    print(table(counts))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
