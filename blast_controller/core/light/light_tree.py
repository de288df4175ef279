"""Light trees: a tree's shape hung on real ports and splitters, as cross-connects of one optical switch.

A tree grows and shrinks without moving what is lit: a new leaf or splitter takes an open leg, so receivers that
stay lose no light (`grow` returns None when no leg is open).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from algorithms.splitter_tree import Leg, shallowest
from blast_controller.core.model.fabric import CrossConnect, OpticalPort, Splitter
from blast_controller.core.model.identifiers import ElementId, SwitchId


@dataclass(frozen=True, slots=True)
class HungSplitter:
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
    splitters: tuple[HungSplitter, ...]
    leaves: tuple[Leaf, ...]

    @property
    def switch(self) -> SwitchId:
        """The optical switch that holds the tree."""
        return self.root.switch

    @cached_property
    def circuits(self) -> tuple[CrossConnect, ...]:
        """The cross-connects that make the tree, roots before leaves."""
        hung = [CrossConnect(self.switch, h.feed, h.splitter.input) for h in self.splitters]
        return (*hung, *(CrossConnect(self.switch, leaf.feed, leaf.port.output) for leaf in self.leaves))

    @cached_property
    def elements(self) -> frozenset[ElementId]:
        """The ports and splitters that the tree holds."""
        ports = {self.root.element, *(leaf.port.element for leaf in self.leaves)}
        return frozenset(ports | {h.splitter.element for h in self.splitters})

    @cached_property
    def open_legs(self) -> tuple[int, ...]:
        """Switch inputs of splitter legs that carry light nowhere, shallowest first."""
        used = {h.feed for h in self.splitters} | {leaf.feed for leaf in self.leaves}
        legs = [(self._depth(leg), order, leg) for order, leg in enumerate(self._legs) if leg not in used]
        return tuple(leg for _, _, leg in sorted(legs))

    @property
    def _legs(self) -> tuple[int, ...]:
        return tuple(leg for h in self.splitters for leg in h.splitter.outputs)

    def _depth(self, feed: int) -> int:
        parent = next((h for h in self.splitters if feed in h.splitter.outputs), None)
        return 0 if parent is None else 1 + self._depth(parent.feed)

    @property
    def leaf_outputs(self) -> frozenset[int]:
        """The switch outputs that lead to the leaves' ToRs."""
        return frozenset(leaf.port.output for leaf in self.leaves)

    def feed_element(self, leaf: Leaf) -> ElementId:
        """The splitter leg that feeds a leaf, as an element; the port whose transmitter does where there is none."""
        for hung in self.splitters:
            if leaf.feed in hung.splitter.outputs:
                return hung.splitter.leg_element(leaf.feed)
        return self.root.element

    def leaf_of(self, rack: str) -> Leaf | None:
        """The leaf that serves `rack`."""
        return next((leaf for leaf in self.leaves if leaf.port.rack == rack), None)


def build(
    root: OpticalPort, receivers: Sequence[OpticalPort], splitters: Sequence[Splitter], loop_leaf: bool
) -> LightTree:
    """The shallowest tree from `root` to `receivers`.

    With `loop_leaf` the root's own receiver sees light too: from a leg of the tree, or, where a single receiver
    needs no splitter, from that receiver's transmitter (a two-way circuit).
    Raises ValueError when the splitters have too few legs.
    """
    if loop_leaf and not splitters and len(receivers) == 1:
        (receiver,) = receivers
        return LightTree(root, (), (Leaf(receiver, root.input), Leaf(root, receiver.input)))
    ports = [*receivers, root] if loop_leaf else list(receivers)
    by_size = sorted(splitters, key=lambda s: s.ways, reverse=True)
    shape = shallowest(len(ports), [s.ways for s in by_size])

    def feed(leg: Leg | None) -> int:
        return root.input if leg is None else by_size[leg[0]].outputs[leg[1]]

    hung = tuple(HungSplitter(s, feed(leg)) for s, leg in zip(by_size, shape.feeds, strict=True))
    return LightTree(root, hung, tuple(Leaf(p, feed(leg)) for p, leg in zip(ports, shape.leaves, strict=True)))


def grow(
    tree: LightTree, ports: Sequence[OpticalPort], splitters: Sequence[Splitter], bad_legs: Collection[int] = ()
) -> LightTree | None:
    """The tree with leaves for `ports` added by way of good open legs and new `splitters`; None if legs are lacking."""
    for splitter in sorted(splitters, key=lambda s: s.ways, reverse=True):
        legs = good_legs(tree, bad_legs)
        if not legs:
            return None
        tree = replace(tree, splitters=(*tree.splitters, HungSplitter(splitter, legs[0])))
    legs = good_legs(tree, bad_legs)
    if len(legs) < len(ports):
        return None
    new = tuple(Leaf(port, leg) for port, leg in zip(ports, legs, strict=False))
    return replace(tree, leaves=tree.leaves + new)


def good_legs(tree: LightTree, bad_legs: Collection[int]) -> list[int]:
    """The open legs that are not bad, shallowest first."""
    return [leg for leg in tree.open_legs if leg not in bad_legs]


def prune(tree: LightTree, racks: Collection[str]) -> LightTree:
    """The tree without the leaves of `racks`, and without the splitters that then serve nobody."""
    tree = replace(tree, leaves=tuple(leaf for leaf in tree.leaves if leaf.port.rack not in racks))
    while idle := [h for h in tree.splitters if not _serves(tree, h)]:
        tree = replace(tree, splitters=tuple(h for h in tree.splitters if h not in idle))
    return tree


def _serves(tree: LightTree, hung: HungSplitter) -> bool:
    feeds = {h.feed for h in tree.splitters} | {leaf.feed for leaf in tree.leaves}
    return not feeds.isdisjoint(hung.splitter.outputs)


def rehang(tree: LightTree, outputs: Collection[int], bad_legs: Collection[int]) -> LightTree | None:
    """The tree with the leaves at these switch outputs moved to good open legs; None if legs are lacking."""
    legs = good_legs(tree, bad_legs)
    moved = [leaf for leaf in tree.leaves if leaf.port.output in outputs]
    if len(legs) < len(moved):
        return None
    kept = tuple(leaf for leaf in tree.leaves if leaf not in moved)
    return replace(tree, leaves=kept + tuple(Leaf(leaf.port, leg) for leaf, leg in zip(moved, legs, strict=False)))
