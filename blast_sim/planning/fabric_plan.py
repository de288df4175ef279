"""The plan of a fabric for a workload: proposals, tried on samples of the workload, priced and compared.

A linear program (`pool_program`) proposes pools of splitters. The optimizer allocates every sample on each, limited by
steps so that a plan is repeatable, and unused splitters are removed. The objective is the mean share of the offered
volume that one decision serves. Amplifiers are tried, before the splitters of one size after the other, if the workload
has groups too wide for the power of a transceiver.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import fmean

from algorithms.b_matching.budget import StepBudget
from algorithms.b_matching.feasibility import Choose, Pieces
from algorithms.b_matching.optimized import OptimizedSelection
from algorithms.b_matching.optimizer import optimize
from algorithms.b_matching.options import Options, options
from blast_sim.allocation.instance import Instance
from blast_sim.planning.fabric_choice import FabricCandidate
from blast_sim.planning.hardware import Hardware, bill, ports_of
from blast_sim.planning.plan_trees import TreeSplitters, tree_choice
from blast_sim.planning.pool_program import PoolProgram, SplitterSize
from blast_sim.planning.prices import Prices

STEPS = 3000
"""Steps of the optimizer for one allocation."""

RATES = (0.001, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.2, 2.0, 4.0)
"""Exchange rates of a proposal: the share of the volume that the price of the fabric without splitters is worth."""


@dataclass(frozen=True, slots=True)
class PlanQuestion:
    """The input of a plan: samples of the workload, without their own ports and splitters, and the offers.

    `max_splitters_per_tree` in a tree (None: no limit), `packed` counting of switch ports (see `Hardware`).
    """

    samples: Sequence[Instance]
    prices: Prices
    max_splitters_per_tree: int | None = None
    packed: bool = False

    @property
    def racks(self) -> int:
        """Of every sample."""
        return len(self.samples[0].ports)


@dataclass(frozen=True, slots=True)
class Reach:
    """The reach of the power budget: leaves of the `widest` group, and shares of the offered volume.

    `too_wide` has no passive tree of any offered splitters, `amplified` of it has one with an amplifier.
    """

    widest: int
    too_wide: float
    amplified: float


@dataclass(frozen=True, slots=True)
class NextPiece:
    """The price (None: no switch of the table has room) and gain in share served of one more piece."""

    name: str
    price: float | None
    watts: float | None
    gain: float | None


class Planner:
    """Proposes, tries and compares fabrics for one question."""

    def __init__(self, question: PlanQuestion) -> None:
        self._question = question
        self._choice = cache(self._find_choice)
        self.reach = self._find_reach()
        self._amplifiable = tuple(question.prices.splitters) if self.reach.amplified else ()

    def proposals(self, ports: int) -> list[Hardware]:
        """Return fabrics with this number of ports per rack, the cheapest first; none if no switch has enough ports."""
        prices, empty = self._question.prices, Hardware(self._question.racks, ports, {}, self._question.packed)
        base = bill(empty, prices)
        if base is None:
            return []
        room, found = prices.switches[-1].ports - empty.switch_ports, [empty]
        for amplified in (None, *self._amplifiable):
            fitted = replace(empty, amplified=amplified)
            every = [self._all_options(sample, fitted) for sample in self._question.samples]
            program = PoolProgram(every, [self._size(fan_out, amplified) for fan_out in prices.splitters], room)
            for rate in sorted(RATES, reverse=True):
                hardware = fitted.with_pool(program.solve(rate / base.price))
                if hardware not in found:
                    found.append(hardware)
        return found

    def tried(self, hardware: Hardware, directional: bool | None = None) -> FabricCandidate | None:
        """Return the evaluated fabric without unused parts; None if no switch of the table has enough ports.

        `directional` replaces the samples' setting.
        """
        if bill(hardware, self._question.prices) is None:
            return None
        instances = [self._on(sample, hardware, directional) for sample in self._question.samples]
        found = [self._allocated(instance, hardware) for instance in instances]
        volumes = [sum(request.weight for request in instance.requests) for instance in instances]
        bounds = [math.inf if one.bound is None else one.bound for one in found]
        smaller = hardware.with_pool(_max_used([pieces for _, pieces in one.selection] for one in found))
        cost = bill(smaller, self._question.prices)
        assert cost is not None, "a fabric with fewer ports fits as well"
        return FabricCandidate(
            smaller,
            cost,
            tuple(one.value / volume for one, volume in zip(found, volumes, strict=True)),
            fmean(min(1.0, bound / volume) for bound, volume in zip(bounds, volumes, strict=True)),
            instances[0].directional,
        )

    def next_pieces(self, chosen: FabricCandidate) -> Iterator[NextPiece]:
        """Yield the gain of one more piece of each kind for this fabric."""
        hardware = chosen.hardware
        for fan_out in self._question.prices.splitters:
            pool = {**hardware.pool, fan_out: hardware.pool.get(fan_out, 0) + 1}
            own = " with its amplifier" if fan_out == hardware.amplified else ""
            yield self._gain(f"a 1:{fan_out} splitter{own}", chosen, replace(hardware, pool=pool))
            if hardware.amplified is None and fan_out in self._amplifiable and fan_out not in hardware.pool:
                better = replace(hardware, pool=pool, amplified=fan_out)
                yield self._gain(f"a 1:{fan_out} splitter with an amplifier", chosen, better)
        yield self._gain("an optical port at every rack", chosen, replace(hardware, ports=hardware.ports + 1))
        if not chosen.directional and not any(sample.loop_leaf for sample in self._question.samples):
            yield self._gain("directional ports (a setting)", chosen, hardware, directional=True)

    def _gain(self, name: str, chosen: FabricCandidate, more: Hardware, directional: bool | None = None) -> NextPiece:
        better, cost = self.tried(more, directional), bill(more, self._question.prices)
        if better is None or cost is None:
            return NextPiece(name, None, None, None)
        # More pieces never serve less of a sample: a loss is the optimizer's.
        gain = fmean(max(0.0, new - old) for new, old in zip(better.shares, chosen.shares, strict=True))
        return NextPiece(name, cost.price - chosen.bill.price, cost.watts - chosen.bill.watts, gain)

    def _find_reach(self) -> Reach:
        """Return the reach of the power budget for every group alone, without competition for splitters."""
        prices, shares = self._question.prices, self._shares_by_leaves()
        plenty = dict.fromkeys(prices.splitters, self._question.racks)
        dark = [leaves for leaves in shares if leaves > 1 and self._choice(None)(leaves, plenty) is None]
        sizes = prices.splitters if prices.amplifier else ()
        lit = [leaves for leaves in dark if any(self._choice(size)(leaves, plenty) for size in sizes)]
        return Reach(max(shares), sum(map(shares.__getitem__, dark)), sum(map(shares.__getitem__, lit)))

    def _shares_by_leaves(self) -> Mapping[int, float]:
        """Return the mean share of the offered volume by the number of leaves of a tree."""
        samples, shares = self._question.samples, defaultdict[int, float](float)
        for sample in samples:
            volume = sum(request.weight for request in sample.requests) * len(samples)
            for request in sample.requests:
                shares[sample.leaves(request)] += request.weight / volume
        return shares

    def _size(self, fan_out: int, amplified: int | None) -> SplitterSize:
        """Return a splitter, priced with the switch ports that it takes and with its amplifier."""
        prices, ports = self._question.prices, ports_of(fan_out, self._question.packed)
        amplifier = prices.amplifier.item.price if prices.amplifier and fan_out == amplified else 0.0
        return SplitterSize(
            fan_out, prices.splitters[fan_out].item.price + ports * prices.per_switch_port + amplifier, ports
        )

    def _find_choice(self, amplified: int | None) -> Choose:
        question, light = self._question, self._question.prices.light
        offer = TreeSplitters(
            {fan_out: self._size(fan_out, amplified).price for fan_out in question.prices.splitters},
            question.racks,
            0.0 if light is None else light.pass_loss_db,
            question.max_splitters_per_tree,
        )
        return tree_choice(question.prices, offer, amplified)

    def _on(self, sample: Instance, hardware: Hardware, directional: bool | None) -> Instance:
        own = sample.directional if directional is None else directional
        return replace(sample, ports=(hardware.ports,) * hardware.racks, pool=hardware.pool, directional=own)

    def _all_options(self, sample: Instance, hardware: Hardware) -> Options:
        plenty = dict.fromkeys(self._question.prices.splitters, self._question.racks)
        instance = self._on(sample, replace(hardware, pool=plenty), None)
        return options(instance.groups(), instance.feasibility(self._choice(hardware.amplified)))

    def _allocated(self, instance: Instance, hardware: Hardware) -> OptimizedSelection:
        feasibility = instance.feasibility(self._choice(hardware.amplified))
        return optimize(instance.groups(), feasibility, StepBudget(STEPS), random.Random(0))


def _max_used(samples: Iterable[Iterable[Pieces]]) -> dict[int, int]:
    maxima: Counter[int] = Counter()
    for sample in samples:
        maxima |= Counter(fan_out for pieces in sample for fan_out in pieces)
    return dict(sorted(maxima.items()))
