"""What to buy for a workload: fabrics proposed, tried on samples of the workload, priced and compared.

A linear programme (`pool_programme`) proposes pools of splitters. Each is allocated on every sample by the optimiser,
limited by steps so that a plan repeats, and cut down to the splitters that were used. What counts is the mean share
of the offered volume that one decision serves.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from algorithms.b_matching.budget import Steps
from algorithms.b_matching.feasibility import Choose, Pieces, by_count
from algorithms.b_matching.optimised import Optimised
from algorithms.b_matching.optimiser import optimise
from algorithms.b_matching.options import Options, options
from algorithms.cascade import Budget, Catalogue
from algorithms.power_budget import Light, Passive, Piece, Window, exactly
from blast_sim.hardware import Bill, Hardware, bill, ports_of
from blast_sim.instance import Instance
from blast_sim.pool_programme import PoolProgramme, Size
from blast_sim.prices import Prices
from blast_sim.wrong_input import WrongInput

STEPS = 3000
"""Steps of the optimiser for one allocation."""

RATES = (0.001, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.2, 2.0, 4.0)
"""Exchange rates of a proposal: the share of the volume that the price of the fabric without splitters is worth."""


@dataclass(frozen=True, slots=True)
class Question:
    """For what to plan: samples of the workload (their own ports and splitters do not count) and what is on offer.

    `most_splitters` in a tree (None: no limit), `packed` counting of switch ports (see `Hardware`).
    """

    samples: Sequence[Instance]
    prices: Prices
    most_splitters: int | None = None
    packed: bool = False

    @property
    def racks(self) -> int:
        """Of every sample."""
        return len(self.samples[0].ports)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A fabric, its bill, the share of each sample's volume that it serves, and an upper bound on the mean share."""

    hardware: Hardware
    bill: Bill
    shares: tuple[float, ...]
    bound: float
    directional: bool

    @property
    def served(self) -> float:
        """The mean share of the offered volume that one decision serves."""
        return fmean(self.shares)


@dataclass(frozen=True, slots=True)
class NextPiece:
    """What adding one thing to a fabric costs (None: no switch of the table has room) and gains in share served."""

    what: str
    price: float | None
    watts: float | None
    gain: float | None


class Planner:
    """Proposes, tries and compares fabrics for one question."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._choose = _tree_choice(question)

    def proposals(self, ports: int) -> list[Hardware]:
        """Fabrics with so many ports per rack, the cheapest first; none if no switch connects so many."""
        question, empty = self._question, self._hardware(ports, {})
        base = bill(empty, question.prices)
        if base is None:
            return []
        room = question.prices.switches[-1].ports - empty.switch_ports
        sizes = [self._size(ways) for ways in question.prices.splitters]
        programme = PoolProgramme([self._all_options(sample, ports) for sample in question.samples], sizes, room)
        found = [empty]
        for rate in sorted(RATES, reverse=True):
            hardware = self._hardware(ports, programme.solve(rate / base.price))
            if hardware not in found:
                found.append(hardware)
        return found

    def tried(self, hardware: Hardware, directional: bool | None = None) -> Candidate | None:
        """The fabric without what it never uses, judged; None if no switch of the table has enough ports.

        `directional` replaces what the samples say about it.
        """
        if bill(hardware, self._question.prices) is None:
            return None
        instances = [self._on(sample, hardware, directional) for sample in self._question.samples]
        found = [self._allocated(instance) for instance in instances]
        volumes = [sum(request.weight for request in instance.requests) for instance in instances]
        bounds = [math.inf if one.bound is None else one.bound for one in found]
        smaller = replace(hardware, pool=_most_used([pieces for _, pieces in one.selection] for one in found))
        cost = bill(smaller, self._question.prices)
        assert cost is not None, "what needs fewer ports fits as well"
        return Candidate(
            smaller,
            cost,
            tuple(one.value / volume for one, volume in zip(found, volumes, strict=True)),
            fmean(min(1.0, bound / volume) for bound, volume in zip(bounds, volumes, strict=True)),
            instances[0].directional,
        )

    def next_pieces(self, chosen: Candidate) -> Iterator[NextPiece]:
        """What one more piece of each kind would add to this fabric."""
        hardware = chosen.hardware
        for ways in self._question.prices.splitters:
            pool = {**hardware.pool, ways: hardware.pool.get(ways, 0) + 1}
            yield self._gain(f"a 1:{ways} splitter", chosen, replace(hardware, pool=pool))
        yield self._gain("an optical port at every rack", chosen, replace(hardware, ports=hardware.ports + 1))
        if not chosen.directional and not any(sample.loop_leaf for sample in self._question.samples):
            yield self._gain("directional ports (a setting)", chosen, hardware, directional=True)

    def _gain(self, what: str, chosen: Candidate, more: Hardware, directional: bool | None = None) -> NextPiece:
        better, cost = self.tried(more, directional), bill(more, self._question.prices)
        if better is None or cost is None:
            return NextPiece(what, None, None, None)
        # What served a sample before still does with more: less is the optimiser's fault.
        gain = fmean(max(0.0, new - old) for new, old in zip(better.shares, chosen.shares, strict=True))
        return NextPiece(what, cost.price - chosen.bill.price, cost.watts - chosen.bill.watts, gain)

    def _hardware(self, ports: int, pool: Mapping[int, int]) -> Hardware:
        kept = {ways: count for ways, count in sorted(pool.items()) if count}
        return Hardware(self._question.racks, ports, kept, self._question.packed)

    def _size(self, ways: int) -> Size:
        prices, ports = self._question.prices, ports_of(ways, self._question.packed)
        return Size(ways, prices.splitters[ways].item.price + ports * prices.per_switch_port, ports)

    def _on(self, sample: Instance, hardware: Hardware, directional: bool | None) -> Instance:
        own = sample.directional if directional is None else directional
        return replace(sample, ports=(hardware.ports,) * hardware.racks, pool=hardware.pool, directional=own)

    def _all_options(self, sample: Instance, ports: int) -> Options:
        plenty = dict.fromkeys(self._question.prices.splitters, self._question.racks)
        instance = self._on(sample, self._hardware(ports, plenty), None)
        return options(instance.groups(), instance.feasibility(self._choose))

    def _allocated(self, instance: Instance) -> Optimised:
        return optimise(instance.groups(), instance.feasibility(self._choose), Steps(STEPS), random.Random(0))


def pareto(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Those that no other one beats in both price and share served, the cheapest first."""
    kept: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda one: (one.bill.price, -one.served)):
        if not kept or candidate.served > kept[-1].served:
            kept.append(candidate)
    return kept


def cheapest_serving(candidates: Sequence[Candidate], share_of_best: float) -> Candidate:
    """The cheapest that serves at least this share of what the best one does."""
    wanted = share_of_best * max(candidate.served for candidate in candidates)
    good = [candidate for candidate in candidates if candidate.served >= wanted]
    return min(good, key=lambda candidate: candidate.bill.price)


def best_for(candidates: Sequence[Candidate], most_price: float) -> Candidate:
    """The one that serves most for at most this price. Raises WrongInput."""
    affordable = [candidate for candidate in candidates if candidate.bill.price <= most_price]
    if not affordable:
        least = min(candidate.bill.price for candidate in candidates)
        raise WrongInput(f"--most-price {most_price:g} is too little: the cheapest fabric costs {least:g}")
    return max(affordable, key=lambda candidate: candidate.served)


def _most_used(samples: Iterable[Iterable[Pieces]]) -> dict[int, int]:
    most: Counter[int] = Counter()
    for sample in samples:
        most |= Counter(ways for pieces in sample for ways in pieces)
    return dict(sorted(most.items()))


def _tree_choice(question: Question) -> Choose:
    """The cheapest splitters for a tree, within the light budget if there is one, and within `most_splitters`."""
    prices = question.prices
    if prices.light is None:
        return by_count(question.most_splitters)
    budget = Budget(
        Light(0.0, 0.0, 0.0),
        Passive("optical switch", exactly(prices.light.pass_loss_db)),
        Window(-prices.light.budget_db, math.inf),
    )
    supply = {
        Piece(
            f"1:{ways}",
            ways,
            exactly(offer.loss_db),
            price=offer.item.price + ports_of(ways, question.packed) * prices.per_switch_port,
        ): question.racks
        for ways, offer in prices.splitters.items()
    }
    catalogue, limit = Catalogue(supply, budget), question.most_splitters

    def choose(leaves: int, pool: Mapping[int, int]) -> Pieces | None:
        found = catalogue.choose(leaves, pool)
        return None if found is None or (limit is not None and len(found) > limit) else found

    return choose
