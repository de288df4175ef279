"""Light trees: a tree's shape hung on real ports and splitters, as cross-connects of one optical switch.

A tree grows and shrinks without moving lit circuits: a new leaf or splitter takes a free output, so the remaining
receivers lose no signal (`grow` returns None when no output is free).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from algorithms.splitter_tree import Output, shallowest
from blast_controller.core.model.fabric import CrossConnect, OpticalPort, Splitter
from blast_controller.core.model.identifiers import ElementId, SwitchId


@dataclass(frozen=True, slots=True)
class PlacedSplitter:
    """A splitter and the switch input whose light feeds it."""

    splitter: Splitter
    feed: int


@dataclass(frozen=True, slots=True)
class Leaf:
    """A ToR port that receives, and the switch input whose light it gets."""

    port: OpticalPort
    feed: int


@dataclass(frozen=True)
class LightTree:
    """A root port that transmits, splitters (parents before children), and leaves, all on one optical switch."""

    root: OpticalPort
    splitters: tuple[PlacedSplitter, ...]
    leaves: tuple[Leaf, ...]

    @property
    def switch(self) -> SwitchId:
        """Return the optical switch that holds the tree."""
        return self.root.switch

    @cached_property
    def circuits(self) -> tuple[CrossConnect, ...]:
        """Return the cross-connects that make the tree, roots before leaves."""
        hung = [CrossConnect(self.switch, h.feed, h.splitter.input) for h in self.splitters]
        return (*hung, *(CrossConnect(self.switch, leaf.feed, leaf.port.output) for leaf in self.leaves))

    @cached_property
    def elements(self) -> frozenset[ElementId]:
        """Return the ports and splitters that the tree holds."""
        ports = {self.root.element, *(leaf.port.element for leaf in self.leaves)}
        return frozenset(ports | {h.splitter.element for h in self.splitters})

    @cached_property
    def free_outputs(self) -> tuple[int, ...]:
        """Return the switch inputs of unused splitter outputs, shallowest first."""
        used = {h.feed for h in self.splitters} | {leaf.feed for leaf in self.leaves}
        outputs = [
            (self._depth(output), order, output) for order, output in enumerate(self._outputs) if output not in used
        ]
        return tuple(output for _, _, output in sorted(outputs))

    @property
    def _outputs(self) -> tuple[int, ...]:
        return tuple(output for h in self.splitters for output in h.splitter.outputs)

    def _depth(self, feed: int) -> int:
        parent = next((h for h in self.splitters if feed in h.splitter.outputs), None)
        return 0 if parent is None else 1 + self._depth(parent.feed)

    @property
    def leaf_outputs(self) -> frozenset[int]:
        """Return the switch outputs that lead to the leaves' ToRs."""
        return frozenset(leaf.port.output for leaf in self.leaves)

    def feed_element(self, leaf: Leaf) -> ElementId:
        """Return the element that feeds a leaf: a splitter output or, without a splitter, the root's port."""
        for hung in self.splitters:
            if leaf.feed in hung.splitter.outputs:
                return hung.splitter.output_element(leaf.feed)
        return self.root.element

    def outputs_behind(self, circuit: CrossConnect) -> frozenset[int]:
        """Return the switch outputs of the leaves whose light passes a circuit of this tree."""
        hung = next((h for h in self.splitters if h.splitter.input == circuit.output), None)
        if hung is None:
            return frozenset({circuit.output})
        below = [child for child in self.circuits if child.input in hung.splitter.outputs]
        return frozenset(output for child in below for output in self.outputs_behind(child))

    def leaf_of(self, rack: str) -> Leaf | None:
        """Return the leaf that serves `rack`."""
        return next((leaf for leaf in self.leaves if leaf.port.rack == rack), None)


def build(
    root: OpticalPort, receivers: Sequence[OpticalPort], splitters: Sequence[Splitter], loop_leaf: bool
) -> LightTree:
    """Return the shallowest tree from `root` to `receivers`.

    With `loop_leaf` the root's own receiver sees light too: from an output of the tree, or, where a single receiver
    needs no splitter, from that receiver's transmitter (a two-way circuit). Raises ValueError when the splitters have
    too few outputs.
    """
    if loop_leaf and not splitters and len(receivers) == 1:
        (receiver,) = receivers
        return LightTree(root, (), (Leaf(receiver, root.input), Leaf(root, receiver.input)))
    ports = [*receivers, root] if loop_leaf else list(receivers)
    by_size = sorted(splitters, key=lambda s: s.fan_out, reverse=True)
    shape = shallowest(len(ports), [s.fan_out for s in by_size])

    def feed(output: Output | None) -> int:
        return root.input if output is None else by_size[output[0]].outputs[output[1]]

    hung = tuple(PlacedSplitter(s, feed(output)) for s, output in zip(by_size, shape.feeds, strict=True))
    return LightTree(root, hung, tuple(Leaf(p, feed(output)) for p, output in zip(ports, shape.leaves, strict=True)))


def grow(
    tree: LightTree, ports: Sequence[OpticalPort], splitters: Sequence[Splitter], bad_outputs: Collection[int] = ()
) -> LightTree | None:
    """Return the tree with leaves for `ports` on free outputs and new `splitters`; None if outputs are lacking."""
    for splitter in sorted(splitters, key=lambda s: s.fan_out, reverse=True):
        outputs = good_outputs(tree, bad_outputs)
        if not outputs:
            return None
        tree = replace(tree, splitters=(*tree.splitters, PlacedSplitter(splitter, outputs[0])))
    outputs = good_outputs(tree, bad_outputs)
    if len(outputs) < len(ports):
        return None
    new = tuple(Leaf(port, output) for port, output in zip(ports, outputs, strict=False))
    return replace(tree, leaves=tree.leaves + new)


def good_outputs(tree: LightTree, bad_outputs: Collection[int]) -> list[int]:
    """Return the open outputs that are not bad, shallowest first."""
    return [output for output in tree.free_outputs if output not in bad_outputs]


def prune(tree: LightTree, racks: Collection[str]) -> LightTree:
    """Return the tree without the leaves of `racks`, and without splitters that then have no leaf."""
    tree = replace(tree, leaves=tuple(leaf for leaf in tree.leaves if leaf.port.rack not in racks))
    while idle := [h for h in tree.splitters if not _serves(tree, h)]:
        tree = replace(tree, splitters=tuple(h for h in tree.splitters if h not in idle))
    return tree


def _serves(tree: LightTree, hung: PlacedSplitter) -> bool:
    feeds = {h.feed for h in tree.splitters} | {leaf.feed for leaf in tree.leaves}
    return not feeds.isdisjoint(hung.splitter.outputs)


def rehang(tree: LightTree, outputs: Collection[int], bad_outputs: Collection[int]) -> LightTree | None:
    """Return the tree with the leaves at these switch outputs moved to free splitter outputs, or None."""
    free = good_outputs(tree, bad_outputs)
    moved = [leaf for leaf in tree.leaves if leaf.port.output in outputs]
    if len(free) < len(moved):
        return None
    kept = tuple(leaf for leaf in tree.leaves if leaf not in moved)
    return replace(tree, leaves=kept + tuple(Leaf(leaf.port, feed) for leaf, feed in zip(moved, free, strict=False)))
