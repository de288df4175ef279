"""Rounds of faults of an optical switch under the core, its executor and a real session of each driver."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.soak.episodes import Counts, Effort, played, table
from tests.support import switch_rounds
from tests.support.switch_beds import BEDS

ROUNDS = 10
"""Of an episode, each with a new switch; the seed chooses the driver in turn."""


@dataclass(frozen=True)
class PlayedSwitch:
    """The counts of one episode, and its failure, if any."""

    seed: int
    counts: Counts
    failure: str | None = None


def play(seed: int) -> PlayedSwitch:
    """Run an episode, whose failure is kept for the report."""
    name = list(BEDS)[seed % len(BEDS)]
    counts: Counter[str] = Counter()
    failure = None
    logging.disable(logging.CRITICAL)
    with TemporaryDirectory(prefix="blast-switch-") as folder:
        try:
            asyncio.run(switch_rounds.play(BEDS[name], Path(folder), ROUNDS, seed, counts))
        except Exception:  # noqa: BLE001 every failure is wanted, not only the first
            failure = f"{name}: {traceback.format_exc()}"
    return PlayedSwitch(seed, Counter({(name, fault): count for fault, count in counts.items()}), failure)


def run(effort: Effort) -> int:
    """Play episodes up to the number of rounds, print the faults that each driver met, and count the failures."""
    counts, failures = Counts(), 0
    episodes = -(-effort.units // ROUNDS)
    for one in played(play, range(effort.seed, effort.seed + episodes), effort):
        counts, failures = counts + one.counts, failures + (one.failure is not None)
    print(f"switches: {counts.total()} rounds of faults, {failures} failures")
    print(table(counts))
    return failures


def trace(seed: int) -> int:
    """Play one episode, and return 1 if it fails."""
    traced = play(seed)
    print(table(traced.counts))
    print(traced.failure or "no failure")
    return 1 if traced.failure else 0
