"""The power budget of a fabric's optical switches: splitters to choose, trees in which it holds, what receivers get.

The matching counts: it asks `choose` for splitters that make a tree between ordinary ports or, if there is none, one
between the best ports of the switch, so that it never finds impossible what `tree` would find possible. `tree` is
exact, and may refuse what the matching has chosen.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial

from algorithms.b_matching.feasibility import Choose, Pieces, by_count
from algorithms.cascade import Catalog
from algorithms.leaf_assignment import Refusal
from algorithms.power_budget import (
    Amplifier,
    Certificate,
    ElementLoss,
    Passive,
    Piece,
    PowerLevel,
    Transceiver,
    exactly,
)
from algorithms.splitter_tree import Shape, shallowest
from blast_controller.core.light.budgeted_tree import (
    BudgetedTree,
    TreeEnds,
    catalog,
    certify_tree,
    deal,
    fit,
    piece_of,
)
from blast_controller.core.light.light_tree import LightTree
from blast_controller.core.model.fabric import CrossConnect, Fabric, OpticalPort, Splitter
from blast_controller.core.model.identifiers import SwitchId
from blast_controller.core.model.optics import Optics
from blast_controller.core.model.requests import LeafMargin

REMEMBERED = 1024
"""Choices of splitters for very wide trees to cache: each pending part repeats the same queries."""

NO_OVERLOAD = 1000.0
"""dBm that nothing sends."""


class LightBudget:
    """Trees for ports and splitters with optics. Computing the catalogs takes a tenth of a second for each switch."""

    def __init__(self, fabric: Fabric) -> None:
        self._optics = fabric.optics
        self._ports = {s: fabric.ports_on(s) for s in fabric.switches if self._optics.budgeted(s)}
        self._whole = {switch: fabric.splitters_on(switch) for switch in self._ports}
        self._measured: dict[tuple[SwitchId, int], tuple[int, Passive]] = {}
        """By switch and output: the input, and the pass as measured."""
        self._sizes: dict[SwitchId, Counter[int]] = {}
        self._catalogs: dict[SwitchId, tuple[Catalog, ...]] = {}
        for switch in self._ports:
            self._compute(switch, self._whole[switch])
        self._solved = lru_cache(REMEMBERED)(_solve)
        self._warm_up()

    def _warm_up(self) -> None:
        """Run the solver once at startup: its first call takes 0.2 s."""
        for ports in self._ports.values():
            others = [port for port in ports if port.rack != ports[0].rack]
            if others:
                fit(self._optics, TreeEnds(ports[0], (others[0],), loop_leaf=False), ())
                return

    def covers(self, switch: SwitchId) -> bool:
        """Return true if trees on this switch have a power budget."""
        return switch in self._ports

    # --------------------------------------------------------------------------------------- what matching asks

    def knows(self, switch: SwitchId, sizes: Mapping[int, int]) -> bool:
        """Return true if the catalog covers this number of splitters of these sizes."""
        return not self.covers(switch) or all(self._sizes[switch][fan_out] >= count for fan_out, count in sizes.items())

    def learn(self, switch: SwitchId, splitters: Sequence[Splitter]) -> None:
        """Add the sizes of splitters that have lost outputs to the catalog."""
        whole = self._whole[switch]
        self._compute(switch, [*whole, *(splitter for splitter in splitters if splitter not in whole)])

    def _compute(self, switch: SwitchId, splitters: Sequence[Splitter]) -> None:
        self._sizes[switch] = Counter(splitter.fan_out for splitter in splitters)
        ports = self._ports[switch]
        best = _at_their_best(self._optics, ports, splitters)
        of_best = (catalog(best, ports, splitters),) if best != self._optics else ()
        self._catalogs[switch] = (catalog(self._optics, ports, splitters), *of_best) if ports else ()

    def choose(self, switch: SwitchId, max_splitters: int | None) -> Choose:
        """Return the function that chooses at most `max_splitters` splitters of a tree on this switch."""
        if not self.covers(switch):
            return by_count(max_splitters)
        return lambda leaves, pool: self._chosen(switch, leaves, pool, max_splitters)

    def _chosen(
        self, switch: SwitchId, leaves: int, pool: Mapping[int, int], max_splitters: int | None
    ) -> Pieces | None:
        found = (self._out_of(trees, leaves, pool, max_splitters) for trees in self._catalogs[switch])
        return next((pieces for pieces in found if pieces is not None), None)

    def _out_of(self, trees: Catalog, leaves: int, pool: Mapping[int, int], max_splitters: int | None) -> Pieces | None:
        if leaves > trees.max_leaves:
            pieces = self._solved(trees, leaves, tuple(sorted((fan_out, n) for fan_out, n in pool.items() if n > 0)))
            return pieces if pieces is None or max_splitters is None or len(pieces) <= max_splitters else None
        pieces = trees.choose(leaves, pool)
        if pieces is None or max_splitters is None or len(pieces) <= max_splitters:
            return pieces
        dearer = (entry.pieces for entry in trees.entries(leaves) if len(entry.pieces) <= max_splitters)
        return next((pieces for pieces in dearer if not Counter(pieces) - Counter(pool)), None)

    # ------------------------------------------------------------------------------------------------- trees

    def tree(
        self, ends: TreeEnds, matched: Sequence[Splitter], splitters: Sequence[Splitter], max_splitters: int | None
    ) -> BudgetedTree | Refusal:
        """Build a tree from splitters of the matched sizes or, if these fail the budget, from any of `splitters`.

        The tree has at most `max_splitters` splitters. A refusal names the binding receiver and element.
        """
        shape = self._shape(ends, [splitter.fan_out for splitter in matched])
        found = deal(self._optics, ends, matched, shape) or fit(self._optics, ends, splitters)
        if isinstance(found, BudgetedTree) and max_splitters is not None:
            count = len(found.tree.splitters)
            if count > max_splitters:
                return Refusal(
                    f"a tree within the power budget needs {count} splitters, but the limit is {max_splitters}"
                )
        return found

    def _shape(self, ends: TreeEnds, fan_out: Sequence[int]) -> Shape | None:
        """Return the arrangement of splitters of these sizes that suffices between ordinary ports."""
        leaves = len(ends.receivers) + (1 if ends.loop_leaf else 0)
        for trees in self._catalogs[ends.root.switch]:
            entry = trees.cheapest(leaves, Counter(fan_out)) if leaves <= trees.max_leaves and fan_out else None
            if entry is not None:
                return trees.tree(entry)
        try:
            return shallowest(leaves, fan_out)
        except ValueError:
            return None

    def brightest(self, ports: Iterable[OpticalPort]) -> OpticalPort:
        """Return the port that sends the most light, at worst."""
        return max(ports, key=lambda port: self._of(port).entering.worst)

    def neediest_first(self, ports: Iterable[OpticalPort]) -> list[OpticalPort]:
        """Return ports in descending order of the power that they need."""
        return sorted(ports, key=lambda port: -self._of(port).needed.min_power)

    def _of(self, port: OpticalPort) -> Transceiver:
        return self._optics.ports[port.element]

    # ------------------------------------------------------------------------------------------- what comes of it

    def certificates(self, tree: LightTree) -> tuple[Certificate, ...]:
        """Return the power at each leaf of a tree, in the order of its leaves; empty without a power budget."""
        if not self.covers(tree.switch):
            return ()
        return certify_tree(self._optics, tree, partial(self._pass, tree.switch))

    def _pass(self, switch: SwitchId, source: int, output: int) -> Passive:
        measured = self._measured.get((switch, output))
        return measured[1] if measured is not None and measured[0] == source else self._optics.passes[switch]

    def note_loss(self, circuit: CrossConnect, loss: ElementLoss) -> float | None:
        """Use a measured loss instead of the planned one.

        Returns the largest planned loss in dB if the measured one has come to be above it.
        """
        planned = self._optics.passes.get(circuit.switch)
        if planned is None:
            return None
        before = self._pass(circuit.switch, circuit.input, circuit.output)
        self._measured[circuit.switch, circuit.output] = circuit.input, replace(planned, loss=loss)
        limit = planned.loss.worst
        # Reported again, it is no second fault.
        return limit if loss.best > limit and not (before is not planned and before.loss.best > limit) else None

    def shortfalls(self, tree: LightTree) -> dict[str, Certificate]:
        """Return the leaves, by their port, that get too little or too much light."""
        return {cert.receiver: cert for cert in self.certificates(tree) if not cert.holds}

    def margins(self, tree: LightTree) -> tuple[LeafMargin, ...]:
        """Return the margins of all leaves for a grant, smallest first."""
        certificates = zip(tree.leaves, self.certificates(tree), strict=False)
        found = (_margin(leaf.port.rack, certificate) for leaf, certificate in certificates)
        return tuple(sorted(found, key=lambda margin: margin.smaller))


def described(refusal: Refusal) -> str:
    """Return a refusal as a clause that names the receiver, the element and both margins."""
    if refusal.binding is None:
        return refusal.sentence
    sensitivity, overload = refusal.binding.sensitivity_margin, refusal.binding.overload_margin
    return f"{refusal.sentence} (margins: sensitivity {sensitivity:+.1f} dB, overload {overload:+.1f} dB)"


def _margin(rack: str, found: Certificate) -> LeafMargin:
    light = found.received
    return LeafMargin(
        rack,
        round(light.worst, 3),
        round(light.typical, 3),
        round(light.best, 3),
        round(found.sensitivity_margin, 3),
        # A limiter leaves a margin of 0, in sums of decimal fractions perhaps just below it: 0.0 is added to -0.0.
        round(found.overload_margin, 3) + 0.0,
        found.binding,
    )


def _solve(trees: Catalog, leaves: int, pool: tuple[tuple[int, int], ...]) -> Pieces | None:
    return trees.choose(leaves, dict(pool))


def _at_their_best(optics: Optics, ports: Sequence[OpticalPort], splitters: Sequence[Splitter]) -> Optics:
    """Return optics in which every element equals the best of its sort: a tree that fails there fails everywhere.

    Overload is ignored. Where all elements of a sort are equal, the optics are unchanged.
    """
    known = [optics.ports[port.element] for port in ports]
    sorts: defaultdict[int, list[Piece]] = defaultdict(list)
    for splitter in splitters:
        sorts[splitter.fan_out].append(piece_of(optics, splitter))
    kinds = [{piece.kind for piece in alike} for alike in sorts.values()]
    if len({(port.entering, port.needed) for port in known}) <= 1 and all(len(alike) == 1 for alike in kinds):
        return optics
    launch = max(port.entering.worst for port in known)
    ideal = Transceiver(
        "", PowerLevel(launch, launch, launch), min(port.needed.min_power for port in known), NO_OVERLOAD
    )
    best = {fan_out: _best_of(alike) for fan_out, alike in sorts.items()}
    return Optics(
        {port.element: ideal for port in ports},
        {splitter.element: best[splitter.fan_out] for splitter in splitters},
        {switch: Passive(passed.name, exactly(passed.loss.worst)) for switch, passed in optics.passes.items()},
    )


def _best_of(pieces: Sequence[Piece]) -> Piece:
    """Return a splitter that leaves no less light than any of these of one size does, be it amplified or not."""
    amplifiers = [piece.amplifier for piece in pieces if piece.amplifier is not None]
    amplifier = None
    if amplifiers:
        gain, output = max(a.gain[0] for a in amplifiers), max(a.max_output for a in amplifiers)
        amplifier = Amplifier("", (gain, gain, gain), output)
    loss = exactly(min(piece.loss.worst for piece in pieces))
    return Piece("", pieces[0].fan_out, loss, amplifier, min(piece.price for piece in pieces))
