"""Fabrics that were tried, and which of them is worth its price."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from blast_sim.base.wrong_input import InputError
from blast_sim.planning.hardware import Bill, Hardware


@dataclass(frozen=True, slots=True)
class FabricCandidate:
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


def pareto(candidates: Iterable[FabricCandidate]) -> list[FabricCandidate]:
    """Return the Pareto-optimal fabrics in price and share served, the cheapest first."""
    kept: list[FabricCandidate] = []
    for candidate in sorted(candidates, key=lambda one: (one.bill.price, -one.served)):
        if not kept or candidate.served > kept[-1].served:
            kept.append(candidate)
    return kept


def cheapest_serving(candidates: Sequence[FabricCandidate], share_of_best: float) -> FabricCandidate:
    """Return the cheapest fabric that serves at least this share of the best one's."""
    required = share_of_best * max(candidate.served for candidate in candidates)
    good = [candidate for candidate in candidates if candidate.served >= required]
    return min(good, key=lambda candidate: candidate.bill.price)


def best_for(candidates: Sequence[FabricCandidate], max_price: float) -> FabricCandidate:
    """Return the fabric that serves the most for at most this price. Raises InputError."""
    affordable = [candidate for candidate in candidates if candidate.bill.price <= max_price]
    if not affordable:
        cheapest = min(candidate.bill.price for candidate in candidates)
        raise InputError(f"--max-price {max_price:g} is too low: the cheapest fabric costs {cheapest:g}")
    return max(affordable, key=lambda candidate: candidate.served)
