"""Rounds of one transfer that changes its transport under faults of its receivers (`handover_rounds.py`)."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.soak.episodes import Counts, Effort, played, table
from tests.support.transport.handover_rounds import HandoverPlan, HandoverRound, StepKind, plan_of


@dataclass(frozen=True)
class PlayedHandover:
    """A round's steps by the transport that they met, its failure, and the share of segments that arrived again."""

    seed: int
    counts: Counts
    repeated: float
    failure: str | None = None


def play(seed: int, log: Callable[[str], None] = lambda line: None) -> PlayedHandover:
    """Play the round with this seed, whose failure is kept for the report."""
    plan = plan_of(seed)
    with TemporaryDirectory(prefix="blast-handover-") as folder:
        round_ = HandoverRound(plan, Path(folder), log)
        try:
            failure = "\n".join(round_.play())
        except Exception:  # noqa: BLE001 every failure is wanted, not only the first
            failure = traceback.format_exc()
    repeated = round_.repeated / max(1, round_.all)
    return PlayedHandover(seed, counts_of(plan), repeated, f"{plan}\n{failure}" if failure else None)


def counts_of(plan: HandoverPlan) -> Counts:
    """Count the steps of a plan by the transport of the time, and by what they do."""
    counts, transport = Counts(), "start"
    for step in plan.steps:
        is_change = step.kind is StepKind.CHANGE
        counts[transport, f"change to {step.subject}" if is_change else step.kind.value] += 1
        transport = step.subject if is_change else transport
    return counts


def run(effort: Effort) -> int:
    """Play the rounds, print which steps met which transport, and count the failures."""
    counts, rounds, failures, repeated, worst = Counts(), 0, 0, 0.0, effort.seed
    for one in played(play, range(effort.seed, effort.seed + effort.units), effort):
        rounds, counts, failures = rounds + 1, counts + one.counts, failures + (one.failure is not None)
        repeated, worst = max((repeated, worst), (one.repeated, one.seed))
    print(f"handovers: {rounds} rounds, {failures} failures")
    print(f"segments that arrived again: at most {repeated:.1%} (seed {worst})\n{table(counts)}")
    return failures


def trace(seed: int) -> int:
    """Play one round, print all that happens, and return 1 if it fails."""
    print(plan_of(seed))
    traced = play(seed, lambda line: print(line, flush=True))
    print(traced.failure or "no failure")
    return 1 if traced.failure else 0
