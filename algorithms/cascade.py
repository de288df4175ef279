"""Splitter trees under a power budget: the cheapest tree for every number of leaves and every state of the pool.

Theory of operation. A slot is a lit input of the optical switch: the root fiber, or a splitter's output. A slot feeds a
leaf (one more pass through the switch to a ToR) or a splitter (one more pass, its loss, and new slots). The multisets
of pieces that can hang below a slot depend on its optical power alone:

    sets(slot) = {nothing} + for each kind: one piece of it + a sum of `fan_out` multisets out of sets(output of that
    kind)

Different orders of the same elements give the same power, so there are few slots. A set of multisets is an integer with
a bit for every vector of counts, and a sum of two sets is a series of shifts, which makes this exact recursion cheap. A
slot with too much (or too little) power for a receiver may stay open, which wastes an output; sets are kept by the
minimum number of wasted outputs, so that leaves = 1 + sum(fan_out - 1) - wasted.

For each number of leaves the minimal multisets (no other one uses less of everything) are kept, cheapest first. The
optimum of a decision is the first one that the pool can still supply.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod

from algorithms.counts_box import CountPacking, CountsBox, Vector, bits_of
from algorithms.level_program import DEEPEST, LevelProgram
from algorithms.power_budget import ROUNDING_DB, InvalidOpticsError, Passive, Piece, PowerLevel, Window
from algorithms.splitter_tree import Output, Shape

Layers = tuple[int, ...]
"""Sets of vectors: index w holds the vectors that waste at least w outputs."""

Nested = tuple[int, tuple["Nested", ...]] | None
"""A tree: (kind, subtree on each output), or None for an output without a splitter."""

MAX_LEAVES = 256
MAX_MULTISETS = 5_000
"""Maximum number of multisets in a catalog, which limits its number of leaves: more would take seconds to compute."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The optical powers and losses that all slots of a tree share.

    Parameters
    ----------
    root : Light
        Power at the root slot in dBm.
    switch : Passive
        One pass through the switch, loss in dB.
    window : Window
        Power range in dBm at a leaf's switch output.
    """

    root: PowerLevel
    switch: Passive
    window: Window

    def lights(self, slot: PowerLevel) -> bool:
        """Return whether a receiver works on this slot.

        Parameters
        ----------
        slot : Light
            Power at the slot in dBm.

        Returns
        -------
        bool
            True if neither the switch nor the receiver has too much power, nor the receiver too little.
        """
        return slot.best <= self.switch.max_input + ROUNDING_DB and self.window.fits(self.switch.after(slot))

    def hopeless(self, slot: PowerLevel) -> bool:
        """Return whether the power is too low for any leaf below this slot, unless it is amplified.

        Parameters
        ----------
        slot : Light
            Power at the slot in dBm.

        Returns
        -------
        bool
            True if one pass through the switch already leaves too little power.
        """
        return self.switch.after(slot).worst < self.window.min_power - ROUNDING_DB


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A multiset of pieces.

    Parameters
    ----------
    counts : Vector
        Number of pieces of each kind.
    pieces : tuple of int
        Fan-outs, the largest first.
    price : float
        Total price, in the currency of the pieces.
    leaves : int
        Number of leaves that the pieces provide.
    """

    counts: Vector
    pieces: tuple[int, ...]
    price: float
    leaves: int


class Catalog:
    """The trees that one budget allows from a pool. The fan-out identifies a kind.

    Computing the table takes a tenth of a second for the paper's three sizes; `choose` is a lookup.

    Parameters
    ----------
    supply : mapping of Piece to int
        Kind to the number of splitters in the pool.
    budget : Budget
        Power at the root, loss of the switch, and power range of the receivers.
    max_leaves : int, optional
        Maximum number of leaves in the table. The attribute of this name is smaller if the pool is too large for that.

    Raises
    ------
    InvalidOpticsError
        If two kinds have the same fan-out.
    """

    def __init__(self, supply: Mapping[Piece, int], budget: Budget, max_leaves: int = MAX_LEAVES) -> None:
        held = {kind: count for kind, count in supply.items() if count > 0}
        self._kinds = sorted(held, key=lambda kind: -kind.fan_out)
        self._fan_outs = [kind.fan_out for kind in self._kinds]
        if len(set(self._fan_outs)) < len(self._fan_outs):
            raise InvalidOpticsError(
                "two kinds of splitters have the same number of outputs: merge them with worst_of()"
            )
        self._budget = budget
        self._amplified = any(kind.amplifier for kind in self._kinds)
        self._held = held
        self.max_leaves = self._affordable(max_leaves)
        self._box = CountsBox(*self._limits(self.max_leaves))
        self._packing = CountPacking(self._box.maxima)
        self._fields = tuple(zip(self._fan_outs, self._packing.shifts, self._box.maxima, strict=True))
        # Per-catalog caches, which are freed with the catalog.
        self._sets, self._fold = cache(self._find_sets), cache(self._find_fold)
        self._tables = self._find_tables()
        self.tree = cache(self._build_tree)

    def _affordable(self, max_leaves: int) -> int:
        while max_leaves and prod(n + 1 for n in self._limits(max_leaves)[0]) > MAX_MULTISETS:
            max_leaves = max_leaves * 7 // 8
        return max_leaves

    def _limits(self, max_leaves: int) -> tuple[Vector, Vector, int | None]:
        """Return the maximum of each kind, the outputs that each adds, and the maximum of all outputs.

        No multiset with more outputs is minimal; None: there is no such maximum.
        """
        added = tuple(fan_out - 1 for fan_out in self._fan_outs)
        maxima = tuple(self._held[kind] for kind in self._kinds)
        if max_leaves == 0:
            return (0,) * len(maxima), added, None
        if self._amplified or not (self._budget.lights(self._budget.root) or self._budget.hopeless(self._budget.root)):
            return maxima, added, None
        # If no output is wasted, removing a splitter without splitters below it costs at most its own outputs.
        useful = tuple(min(n, -(-(max_leaves - 1) // a)) for n, a in zip(maxima, added, strict=True))
        return useful, added, max_leaves + max(added, default=0) - 1

    # ------------------------------------------------------------------------------------------- lookup

    def choose(self, leaves: int, pool: Mapping[int, int]) -> tuple[int, ...] | None:
        """Return the cheapest pieces for a number of leaves.

        Parameters
        ----------
        leaves : int
            Number of leaves of the tree, at least 1. Above `max_leaves` the search takes milliseconds.
        pool : mapping of int to int
            Fan-out to the number of free splitters.

        Returns
        -------
        tuple of int or None
            Fan-outs of the pieces, the largest first; None if no tree fits the pool.

        Raises
        ------
        InvalidOpticsError
            If `leaves` is less than 1.
        SolverError
            If the integer program for more than `max_leaves` leaves fails.
        """
        if leaves > self.max_leaves:
            return self._solved(leaves, pool)
        entry = self.cheapest(leaves, pool)
        return None if entry is None else entry.pieces

    def _solved(self, leaves: int, pool: Mapping[int, int]) -> tuple[int, ...] | None:
        """Solve for more leaves than the table has: exact too, but it takes milliseconds."""
        left = {kind: min(n, pool.get(kind.fan_out, 0)) for kind, n in self._held.items() if pool.get(kind.fan_out, 0)}
        budget = self._budget
        levels = LevelProgram(
            budget.root, budget.switch, left, {budget.window: leaves}, budget.window.min_power
        ).solve()
        if levels is None:
            return None
        fan_out = (kind.fan_out for (_, kind), count in levels.hung.items() for _ in range(count))
        return tuple(sorted(fan_out, reverse=True))

    def cheapest(self, leaves: int, pool: Mapping[int, int]) -> CatalogEntry | None:
        """Return the cheapest multiset that a pool contains.

        Parameters
        ----------
        leaves : int
            Number of leaves of the tree, from 1 to `max_leaves`.
        pool : mapping of int to int
            Fan-out to the number of free splitters.

        Returns
        -------
        Entry or None
            None if no tree fits the pool.

        Raises
        ------
        InvalidOpticsError
            If `leaves` is out of range.
        """
        if not 1 <= leaves <= self.max_leaves:
            raise InvalidOpticsError(f"this catalog has trees for 1 to {self.max_leaves} leaves, not for {leaves}")
        have = guards = self._packing.guards
        for fan_out, shift, limit in self._fields:
            count = pool.get(fan_out, 0)
            if count > 0:
                have += (count if count < limit else limit) << shift
        for packed, entry in self._tables[leaves]:
            # `Packing.covers` inlined: this is the inner loop of every decision.
            if (have - packed) & guards == guards:
                return entry
        return None

    def entries(self, leaves: int) -> list[CatalogEntry]:
        """Return the minimal multisets for a number of leaves.

        Parameters
        ----------
        leaves : int
            Number of leaves of the tree, from 1 to `max_leaves`.

        Returns
        -------
        list of Entry
            The cheapest first.
        """
        return [entry for _, entry in self._tables[leaves]]

    # --------------------------------------------------------------------------------------- computation

    def _find_sets(self, slot: PowerLevel, depth: int) -> Layers:
        """Return the multisets that can hang below `slot`, with at most `depth` splitters in series."""
        found: Layers = (1,) if self._budget.lights(slot) else (0, 1)
        if depth == 0 or (self._budget.hopeless(slot) and not self._amplified):
            return found
        for index, kind in enumerate(self._kinds):
            output = kind.hung(slot, self._budget.switch)
            if output is not None and self._sets(output, depth - 1) != (0, 1):
                below = self._fold(output, depth - 1, kind.fan_out)
                found = self._merge(found, tuple(self._box.add_one(index, layer) for layer in below))
        return found

    def _find_fold(self, slot: PowerLevel, depth: int, outputs: int) -> Layers:
        """Return the multisets that can hang below `outputs` slots like this one, together."""
        if outputs == 1:
            return self._sets(slot, depth)
        first, second = self._fold(slot, depth, outputs // 2), self._fold(slot, depth, outputs - outputs // 2)
        sums = [0] * (len(first) + len(second) - 1)
        for wasted, mine in enumerate(first):
            for more, theirs in enumerate(second):
                sums[wasted + more] |= self._box.sums(mine, theirs)
        return _min_wasted(sums)

    @staticmethod
    def _merge(first: Layers, second: Layers) -> Layers:
        longest = max(len(first), len(second))
        padded = [layers + (0,) * (longest - len(layers)) for layers in (first, second)]
        return _min_wasted([mine | theirs for mine, theirs in zip(*padded, strict=True)])

    def _find_tables(self) -> list[list[tuple[int, CatalogEntry]]]:
        """Return, by number of leaves, the minimal multisets, cheapest first, each also packed for comparison."""
        layers = self._sets(self._budget.root.rounded, DEEPEST)
        found = [self._entry(bit, wasted) for wasted, layer in enumerate(layers) for bit in bits_of(layer)]
        ranked = sorted(found, key=lambda entry: (entry.price, len(entry.pieces), entry.counts))
        packed = [(self._packing.pack(entry.counts), entry) for entry in ranked]
        return [self._minimal(packed, leaves) for leaves in range(self.max_leaves + 1)]

    def _minimal(self, ranked: Sequence[tuple[int, CatalogEntry]], leaves: int) -> list[tuple[int, CatalogEntry]]:
        # A minimal multiset has no superfluous splitter, so its surplus is less than one splitter's outputs.
        too_many = leaves + max(self._fan_outs, default=1)
        kept: list[tuple[int, CatalogEntry]] = []
        for packed, entry in ranked:
            if leaves <= entry.leaves < too_many and not any(self._packing.covers(packed, less) for less, _ in kept):
                kept.append((packed, entry))
        return kept

    def _entry(self, bit: int, wasted: int) -> CatalogEntry:
        counts = self._box.vector(bit)
        pieces = tuple(fan_out for fan_out, n in zip(self._fan_outs, counts, strict=True) for _ in range(n))
        price = sum(kind.price * n for kind, n in zip(self._kinds, counts, strict=True))
        return CatalogEntry(counts, pieces, price, 1 + sum(fan_out - 1 for fan_out in pieces) - wasted)

    # -------------------------------------------------------------------------------------------- trees

    def _build_tree(self, entry: CatalogEntry) -> Shape:
        """Place the pieces of `entry` within the power budget; leaves are all usable outputs, the strongest first."""
        nested = self._hang(self._budget.root.rounded, DEEPEST, self._box.bit(entry.counts))
        fan_out: list[int] = []
        feeds: list[Output | None] = []
        outputs: list[tuple[PowerLevel, Output | None]] = []
        waiting: list[tuple[Nested, PowerLevel, Output | None]] = [(nested, self._budget.root, None)]
        for tree, slot, output in waiting:
            if tree is None:
                outputs.append((slot, output))
                continue
            kind, children = tree
            below = self._kinds[kind].hung(slot, self._budget.switch)
            assert below is not None, "only trees without an overdriven element are in the sets"
            waiting += [(child, below, (len(fan_out), number)) for number, child in enumerate(children)]
            fan_out.append(self._kinds[kind].fan_out)
            feeds.append(output)
        good = sorted((found for found in outputs if self._budget.lights(found[0])), key=lambda found: -found[0].worst)
        return Shape(tuple(fan_out), tuple(feeds), tuple(output for _, output in good))

    def _hang(self, slot: PowerLevel, depth: int, bit: int) -> Nested:
        if bit == 0:
            return None
        wasted = _wasted(self._sets(slot, depth), bit)
        for index, kind in enumerate(self._kinds):
            rest = self._box.less_one(index, bit)
            output = kind.hung(slot, self._budget.switch)
            if rest is None or output is None or self._sets(output, depth - 1) == (0, 1):
                continue
            if _wasted(self._fold(output, depth - 1, kind.fan_out), rest) == wasted:
                parts = self._split(output, depth - 1, kind.fan_out, rest)
                return index, tuple(self._hang(output, depth - 1, part) for part in parts)
        raise AssertionError("a vector of a set has a piece on top")

    def _split(self, slot: PowerLevel, depth: int, outputs: int, bit: int) -> Iterator[int]:
        """Yield one vector of `sets` for each output; together they are the vector `bit` of `fold`."""
        if outputs == 1 or bit == 0:
            yield from (bit, *[0] * (outputs - 1))
            return
        wasted = _wasted(self._fold(slot, depth, outputs), bit)
        half, other = self._fold(slot, depth, outputs // 2), self._fold(slot, depth, outputs - outputs // 2)
        for spent, layer in enumerate(half[: wasted + 1]):
            for part in bits_of(layer):
                rest = self._box.difference(bit, part)
                if rest is not None and _wasted(other, rest) == wasted - spent:
                    yield from self._split(slot, depth, outputs // 2, part)
                    yield from self._split(slot, depth, outputs - outputs // 2, rest)
                    return
        raise AssertionError("a vector of a fold is the sum of two")


def _min_wasted(layers: Sequence[int]) -> Layers:
    """Keep each vector only in the layer with the fewest wasted outputs."""
    seen, kept = 0, []
    for layer in layers:
        kept.append(layer & ~seen)
        seen |= layer
    while kept and kept[-1] == 0:
        kept.pop()
    return tuple(kept)


def _wasted(layers: Layers, bit: int) -> int:
    """Return the minimum number of outputs that this vector wastes; the number of layers if it is in none of them."""
    return next((wasted for wasted, layer in enumerate(layers) if layer >> bit & 1), len(layers))
