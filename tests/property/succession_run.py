"""Many rounds of faults of several controllers: `python -m tests.property.succession_run --rounds 10000 --jobs 2`.

A failure names the one command that shows it again; an episode has some rounds.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from tests.support.episodes import Counts, arguments, played, table
from tests.support.succession.faults import FAULTS, Fault
from tests.support.succession.seeded_bugs import BUGS
from tests.support.succession.simulation import Simulation

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
    parser = arguments("tests.property.succession_run", __doc__)
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--seeded-bug", choices=[bug.__name__ for bug in BUGS], help="look whether this one is found")
    options = parser.parse_args()
    episodes = -(-options.rounds // ROUNDS)
    if options.seeded_bug:
        found = is_found(options.seeded_bug, episodes)
        print(f"{options.seeded_bug}: {'found' if found else 'not found'}")
        return 0 if found else 1
    if options.trace:
        traced = play(options.seed, say=lambda line: print(line, flush=True))
        print(traced.failure or "no failure")
        return 1 if traced.failure else 0
    started, counts, rounds, granted, calls, failures = time.monotonic(), Counts(), 0, 0, 0, 0
    for one in played(play, episodes, options):
        rounds, counts, failures = rounds + ROUNDS, counts + one.counts, failures + (one.failure is not None)
        granted, calls = granted + one.granted, calls + one.calls
    took = time.monotonic() - started
    print(f"{rounds} rounds of faults, {granted} grants, {calls} calls checked, {took:.0f} s, {failures} failures")
    print(table(counts))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
