"""Light trees that hold the power budget: which splitters to take, where to hang them, and what each leaf then gets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from algorithms.cascade import MAX_LEAVES, Budget, Catalog
from algorithms.leaf_assignment import Ends, FittedTree, Refusal, deal_tree, fit_tree, worst_of
from algorithms.power_budget import Amplifier, Certificate, Element, Passive, Piece, certify
from algorithms.splitter_tree import Output, Shape
from blast_controller.core.light.light_tree import Leaf, LightTree, PlacedSplitter
from blast_controller.core.model.fabric import OpticalPort, Splitter
from blast_controller.core.model.optics import Optics


@dataclass(frozen=True)
class BudgetedTree:
    """A tree in which every margin holds, and what its leaves get, in the order of `tree.leaves`."""

    tree: LightTree
    certificates: tuple[Certificate, ...]


@dataclass(frozen=True)
class TreeEnds:
    """The ports of the sender and of the receivers of a tree, all on one optical switch.

    `loop_leaf` is true if the sender's own receiver is a leaf.
    """

    root: OpticalPort
    receivers: tuple[OpticalPort, ...]
    loop_leaf: bool


def fit(
    optics: Optics, ends: TreeEnds, splitters: Sequence[Splitter], first: Shape | None = None
) -> BudgetedTree | Refusal:
    """Build a tree of `splitters` with positive margins at every receiver, or return the binding receiver and element.

    Pass the splitters of the matching with the catalog's tree or `shallowest(…)` as `first`; after a refusal pass all
    free splitters, because weak racks may need another size. Only for switches that are `budgeted`.
    """
    pieces = [piece_of(optics, splitter) for splitter in splitters]
    fitted = fit_tree(_ends(optics, ends), pieces, optics.passes[ends.root.switch], first)
    return fitted if isinstance(fitted, Refusal) else _budgeted(fitted, ends, splitters)


def deal(optics: Optics, ends: TreeEnds, splitters: Sequence[Splitter], shape: Shape | None) -> BudgetedTree | None:
    """Return the tree of the given shape with positive margins at every receiver; None if a receiver falls short."""
    pieces = [piece_of(optics, splitter) for splitter in splitters]
    fitted = deal_tree(_ends(optics, ends), pieces, optics.passes[ends.root.switch], shape)
    return None if fitted is None else _budgeted(fitted, ends, splitters)


def _ends(optics: Optics, ends: TreeEnds) -> Ends:
    receivers = tuple(optics.ports[port.element] for port in ends.receivers)
    return Ends(optics.ports[ends.root.element], receivers, ends.loop_leaf)


def _budgeted(fitted: FittedTree, ends: TreeEnds, splitters: Sequence[Splitter]) -> BudgetedTree:
    by_name: dict[str, Splitter] = {splitter.element: splitter for splitter in splitters}
    return BudgetedTree(_hung(fitted, ends, by_name), fitted.certificates)


def piece_of(optics: Optics, splitter: Splitter) -> Piece:
    """Return a splitter with the outputs that it has now; the loss stays that of the whole one."""
    whole = optics.splitters[splitter.element]
    return whole if whole.fan_out == splitter.fan_out else replace(whole, fan_out=splitter.fan_out)


def _hung(fitted: FittedTree, ends: TreeEnds, by_name: Mapping[str, Splitter]) -> LightTree:
    splitters = [by_name[piece.name] for piece in fitted.pieces]

    def feed(output: Output | None) -> int:
        return ends.root.input if output is None else splitters[output[0]].outputs[output[1]]

    ports = (*ends.receivers, ends.root) if ends.loop_leaf else ends.receivers
    feeds = [feed(output) for output in fitted.shape.leaves]
    if fitted.two_way:
        feeds[-1] = ends.receivers[0].input
    hung = tuple(PlacedSplitter(s, feed(output)) for s, output in zip(splitters, fitted.shape.feeds, strict=True))
    return LightTree(ends.root, hung, tuple(Leaf(port, output) for port, output in zip(ports, feeds, strict=True)))


PassOf = Callable[[int, int], Passive]
"""The pass through the switch from an input to an output: as planned, or as measured."""


def certify_tree(optics: Optics, tree: LightTree, pass_of: PassOf | None = None) -> tuple[Certificate, ...]:
    """Compute the power at each leaf of any tree, sufficient or not; each pass as planned without `pass_of`."""
    planned = optics.passes[tree.switch]
    feeding = {output: hung for hung in tree.splitters for output in hung.splitter.outputs}
    # A two-way circuit lights the sender's receiver from the other end.
    sources = {port.input: port for port in (*(leaf.port for leaf in tree.leaves), tree.root)}

    def walk(feed: int, output: int) -> tuple[OpticalPort, list[Element]]:
        passed = planned if pass_of is None else pass_of(feed, output)
        if feed not in feeding:
            return sources[feed], [passed]
        splitter = feeding[feed].splitter
        source, path = walk(feeding[feed].feed, splitter.input)
        return source, [*path, *piece_of(optics, splitter).elements, passed]

    def of(leaf: Leaf) -> Certificate:
        source, path = walk(leaf.feed, leaf.port.output)
        return certify(optics.ports[source.element], path, optics.ports[leaf.port.element])

    return tuple(map(of, tree.leaves))


# --------------------------------------------------------------------------------------- what the matching asks


def catalog(
    optics: Optics, ports: Sequence[OpticalPort], splitters: Sequence[Splitter], max_leaves: int = MAX_LEAVES
) -> Catalog:
    """Build the catalog of trees of one switch (that of `ports`) between ordinary ports, for `Feasibility`.

    Ordinary are the median sender and the median receiver; `fit` handles groups with weaker ones. Splitters of one size
    count as the worst of them. Build it again when the usable splitters change.
    """
    known = [optics.ports[port.element] for port in ports]
    launches = sorted((port.entering for port in known), key=lambda light: light.worst)
    windows = sorted(port.needed for port in known)
    middle = len(known) // 2
    budget = Budget(launches[(len(known) - 1) // 2], optics.passes[ports[0].switch], windows[middle])
    return Catalog(_kinds(optics, splitters), budget, max_leaves)


def _kinds(optics: Optics, splitters: Iterable[Splitter]) -> dict[Piece, int]:
    alike: defaultdict[tuple[int, Amplifier | None], list[Piece]] = defaultdict(list)
    for splitter in splitters:
        piece = piece_of(optics, splitter)
        alike[piece.fan_out, piece.kind.amplifier].append(piece)
    # The matching counts splitters by their ways only: of one size, the sort that there is most of is what it gets.
    limit = {same[0].fan_out: same for same in sorted(alike.values(), key=len)}
    return {worst_of(same): len(same) for same in limit.values()}
