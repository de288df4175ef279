"""The paper's greedy on its own mixture (Blast, section III-C.3) in every reading that the text leaves open.

Groups of one size from 100 to 1000 servers that share no rack, and 1 to 100 groups of all these sizes that may share
some; neighboring racks or any; volumes counted in receiving racks or servers. A part of allocation_quality.py.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean

from algorithms.b_matching.optimized import total
from algorithms.b_matching.scores import FLOOR, by_score
from blast_sim.allocation import papers_mixture, workloads
from blast_sim.papers.blast.measuring import proven_optima
from blast_sim.papers.blast.measuring.proven_optima import Clock, Reference

GROUPS = (1, 2, 3, 5, 8, 10, 20, 40, 60, 100)
SIZES = tuple(range(100, 1001, 100))
SECONDS = 0.05
"""Of the optimizer."""

PAPERS_SHARE = 0.99
""""More than 99 %" of the optimum (section III-C.3)."""


@dataclass(frozen=True, slots=True)
class GreedyReading:
    """`racks` are apart (`amount` servers a group) or shared (by `amount` groups)."""

    racks: str
    place: str
    counted: str
    amount: int

    @property
    def label(self) -> str:
        """The name of its instances."""
        return f"mixture {self.racks} {self.place} {self.counted} {self.amount}"

    def instance(self, seed: int) -> workloads.WorkloadInstance:
        """Return the mixture in this reading, for this seed."""
        draw = papers_mixture.apart if self.racks == "apart" else papers_mixture.sharing
        return draw(self.place, self.amount, seed, self.counted)


READINGS = tuple(
    GreedyReading(racks, place, counted, amount)
    for racks, amounts in (("apart", SIZES), ("shared", GROUPS))
    for counted, place, amount in product(("racks", "servers"), ("contig", "random"), amounts)
)


@dataclass(frozen=True, slots=True)
class ReadingRow:
    """Shares of the proven optimum over the seeds; of the best known value for seeds without proof."""

    racks: str
    place: str
    counted: str
    amount: int
    greedy: float
    worst: float
    best: float
    optimizer: float
    seeds: int
    proven: int

    @property
    def holds(self) -> bool:
        """True if the greedy reaches the paper's share, or if groups share racks, where it need not."""
        return self.racks != "apart" or self.worst > PAPERS_SHARE


def rows(
    readings: Iterable[GreedyReading], seeds: Sequence[int], known: Mapping[str, Reference], clock: Clock
) -> list[ReadingRow]:
    """Measure."""
    return [_measure(reading, seeds, known, clock) for reading in readings]


def _measure(reading: GreedyReading, seeds: Sequence[int], known: Mapping[str, Reference], clock: Clock) -> ReadingRow:
    print(f"\r{reading.label:60}", end="", file=sys.stderr, flush=True)
    greedy, optimized, proven = [], [], 0
    for seed in seeds:
        instance = reading.instance(seed)
        reference = known.get(proven_optima.name_of(reading, seed), proven_optima.NOTHING_KNOWN)
        paper = total(by_score(FLOOR[0], instance.groups(), instance.feasibility()))
        found, _ = proven_optima.within(instance, SECONDS, clock)
        best = max(reference.value, found.value, paper)
        greedy.append(paper / best)
        optimized.append(found.value / best)
        proven += reference.proven
    where = (reading.racks, reading.place, reading.counted, reading.amount)
    return ReadingRow(*where, fmean(greedy), min(greedy), max(greedy), fmean(optimized), len(seeds), proven)


def show(measured: Iterable[ReadingRow]) -> None:
    """Print the table."""
    title = "the greedy on the paper's mixture, % of the optimum"
    print(f"\n{title:62} {'mean':>7} {'worst':>7} {'best':>7} {'optimizer':>9}")
    for row in measured:
        amount = f"{row.amount} servers each" if row.racks == "apart" else f"{row.amount} groups"
        label = f"racks {row.racks}, {row.place}, counted in {row.counted}, {amount}"
        proven = "" if row.proven == row.seeds else f"  {row.proven}/{row.seeds} proven"
        missed = "" if row.holds else "  MISSED"
        print(f"{label:62} {row.greedy:7.2%} {row.worst:7.2%} {row.best:7.2%} {row.optimizer:9.2%}{proven}{missed}")
