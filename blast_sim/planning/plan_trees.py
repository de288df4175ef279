"""Which splitters a tree of a planned fabric takes: within the light budget, behind an amplifier where that is short.

An amplifier is fixed before a splitter, and a tree that needs one begins with such a splitter, where it serves every
leaf. Light that is amplified a second time is not counted on. In one fabric the splitters of one size have amplifiers,
all of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property

from algorithms.b_matching.feasibility import Choose, Pieces, by_count
from algorithms.cascade import Budget, Catalog, CatalogEntry
from algorithms.power_budget import Amplifier, Passive, Piece, PowerLevel, Window, exactly
from blast_sim.planning.prices import AmplifierOffer, PricedLightBudget, Prices


@dataclass(frozen=True)
class TreeSplitters:
    """The splitters of trees, at most `max_per_size` of each size in one tree.

    `price_of` maps fan-out to the installed price. A pass through the optical switch loses `pass_loss_db`; a tree has
    at most `max_splitters_per_tree` splitters (None: no limit).
    """

    price_of: Mapping[int, float]
    max_per_size: int
    pass_loss_db: float
    max_splitters_per_tree: int | None = None


def tree_choice(prices: Prices, offer: TreeSplitters, amplified: int | None = None) -> Choose:
    """Return a rule that selects the cheapest splitters of a pool for a tree.

    In the pool, splitters of the size `amplified` have an amplifier each. Without a power budget in `prices`, only the
    number of splitters limits trees.
    """
    if prices.light is None:
        return by_count(offer.max_splitters_per_tree)
    passive = _Trees(prices, prices.light, offer)
    if amplified is None or prices.amplifier is None:
        return passive.choose
    boosted = _Trees(prices, prices.light, offer, _as_if_launched(prices.amplifier, offer), amplified)

    def choose(leaves: int, pool: Mapping[int, int]) -> Pieces | None:
        found = passive.choose(leaves, pool)
        return boosted.choose(leaves, pool) if found is None else found

    return choose


class _Trees:
    """The trees for a launch power of `launched` dB; with `first` only trees that begin with this size."""

    def __init__(
        self,
        prices: Prices,
        light: PricedLightBudget,
        offer: TreeSplitters,
        launched: float = 0.0,
        first: int | None = None,
    ) -> None:
        self._limit, self._first = offer.max_splitters_per_tree, first
        self._budget = Budget(
            PowerLevel(launched, launched, launched),
            Passive("optical switch", exactly(offer.pass_loss_db)),
            Window(-light.budget_db, math.inf),
        )
        self._supply = {
            Piece(
                f"1:{fan_out}", fan_out, exactly(prices.splitters[fan_out].loss_db), price=offer.price_of[fan_out]
            ): offer.max_per_size
            for fan_out in prices.splitters
            # A wider splitter would come first, and would be the one to amplify.
            if first is None or fan_out <= first
        }
        self._catalog = Catalog(self._supply, self._budget)
        self._entries = cache(self._find_entries)

    def choose(self, leaves: int, pool: Mapping[int, int]) -> Pieces | None:
        """Return the cheapest tree with `leaves` leaves that `pool` can supply, or None."""
        if self._first is not None and not pool.get(self._first):
            return None
        if self._first is None:
            found = self._catalog.choose(leaves, pool)
        elif leaves > self._catalog.max_leaves:
            found = self._evenly(leaves, pool)
        else:
            found = next((e.pieces for e in self._entries(leaves) if _pays(pool, e.pieces)), None)
        return None if found is None or (self._limit is not None and len(found) > self._limit) else found

    def _find_entries(self, leaves: int) -> list[CatalogEntry]:
        trees = self._catalog.entries(leaves)
        return [entry for entry in trees if entry.pieces and self._catalog.tree(entry).fan_out[0] == self._first]

    def _evenly(self, leaves: int, pool: Mapping[int, int]) -> Pieces | None:
        """Return the same beyond the table, if the outputs of the first splitter can share the leaves evenly."""
        assert self._first is not None, "a passive tree is for the catalog alone"
        left, taken = Counter(pool), [self._first]
        left[self._first] -= 1
        for output in range(self._first):
            share = leaves // self._first + (output < leaves % self._first)
            found = self._below_a_output.choose(share, left) if share else ()
            if found is None:
                return None
            left.subtract(found)
            taken += found
        return tuple(sorted(taken, reverse=True))

    @cached_property
    def _below_a_output(self) -> Catalog:
        """The trees from an output of the first splitter, including a single leaf."""
        first = next(piece for piece in self._supply if piece.fan_out == self._first)
        slot = first.hung(self._budget.root, self._budget.switch)
        assert slot is not None, "nothing is overdriven where nothing has a limit"
        return Catalog(self._supply, replace(self._budget, root=slot))


def _as_if_launched(amplifier: AmplifierOffer, offer: TreeSplitters) -> float:
    """Return the launch power of a transmitter that equals the amplifier's output before the first splitter."""
    passed = Amplifier("amplifier", (amplifier.gain_db,) * 3, amplifier.max_output_db).after(
        PowerLevel(-offer.pass_loss_db, -offer.pass_loss_db, -offer.pass_loss_db)
    )
    return passed.worst + offer.pass_loss_db


def _pays(pool: Mapping[int, int], pieces: Pieces) -> bool:
    return all(pool.get(fan_out, 0) >= pieces.count(fan_out) for fan_out in set(pieces))
