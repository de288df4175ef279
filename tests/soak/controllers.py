"""Rounds of faults of several controllers on a virtual clock (`tests/support/succession`)."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.soak.episodes import Counts, Effort, played, table
from tests.support.succession.faults import FAULTS, Fault
from tests.support.succession.simulation import Simulation

ROUNDS = 4
"""Of an episode."""


@dataclass(frozen=True)
class Played:
    """The counts of one episode, the number of its clients' grants, and its failure, if any."""

    seed: int
    counts: Counts
    granted: int
    calls: int
    failure: str | None = None


def play(
    seed: int,
    rounds: int = ROUNDS,
    log: Callable[[str], None] = lambda line: None,
    faults: Sequence[Fault] = FAULTS,
) -> Played:
    """Run an episode, whose failure is kept for the report."""
    counts: Counts = Counter()
    simulation = Simulation(seed, counts, log, faults)
    failure = None
    try:
        simulation.play(rounds)
    except Exception:  # noqa: BLE001 every failure is wanted, not only the first
        failure = traceback.format_exc()
    histories = simulation.histories
    return Played(seed, counts, histories.granted, sum(map(len, histories.of.values())), failure)


def course(seed: int) -> list[str]:
    """Return the log of an episode."""
    lines: list[str] = []
    play(seed, log=lines.append)
    return lines


def run(effort: Effort) -> int:
    """Play episodes up to the number of rounds, print the faults and phases that met, and count the failures."""
    counts, rounds, granted, calls, failures = Counts(), 0, 0, 0, 0
    episodes = -(-effort.units // ROUNDS)
    for one in played(play, range(effort.seed, effort.seed + episodes), effort):
        rounds, counts, failures = rounds + ROUNDS, counts + one.counts, failures + (one.failure is not None)
        granted, calls = granted + one.granted, calls + one.calls
    print(f"controllers: {rounds} rounds of faults, {granted} grants, {calls} calls checked, {failures} failures")
    print(table(counts))
    return failures


def trace(seed: int) -> int:
    """Play one episode, print all that happens, and return 1 if it fails."""
    traced = play(seed, log=lambda line: print(line, flush=True))
    print(traced.failure or "no failure")
    return 1 if traced.failure else 0
