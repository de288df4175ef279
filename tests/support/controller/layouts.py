"""Layouts, and pairs of them, as Hypothesis strategies."""

from __future__ import annotations

from hypothesis import strategies as st

from blast_controller.core.light.forwarding import forwards_for
from blast_controller.core.light.layout import Layout
from blast_controller.core.light.light_tree import LightTree, build, good_outputs, grow, prune, rehang
from blast_controller.core.model.fabric import Fabric
from tests.support.controller.core import make_fabric

FABRIC: Fabric = make_fabric(8, [4, 4, 2, 2])
SENDER = "r1h1"
GROUP = "239.77.0.1"


def layout(tree: LightTree | None, receivers: list[str]) -> Layout:
    """Return the layout of a tree for these receivers."""
    hosts = FABRIC.hosts
    forwards = forwards_for(FABRIC, hosts[SENDER], [hosts[name] for name in receivers], tree, GROUP)
    return Layout(tuple(receivers), tree, forwards)


@st.composite
def members(draw: st.DrawFn, racks: list[str]) -> list[str]:
    """Draw one or more hosts of each of these racks, maybe neighbors of the sender, in any order."""
    found = [f"{rack}h{n}" for rack in racks for n in draw(st.sampled_from([(1,), (2,), (1, 2)]))]
    return draw(st.permutations(found + draw(st.sampled_from([[], ["r1h2"]]))))


@st.composite
def trees(draw: st.DrawFn) -> LightTree:
    """Draw a tree from r1 to one or more other racks."""
    racks = draw(st.lists(st.sampled_from([f"r{n}" for n in range(2, 9)]), min_size=1, max_size=6, unique=True))
    ports = [FABRIC.racks[rack].optical_ports[0] for rack in racks]
    splitters, outputs = [], 1
    for splitter in draw(st.permutations(list(FABRIC.splitters.values()))):
        if outputs < len(ports):
            splitters.append(splitter)
            outputs += splitter.fan_out - 1
    return build(FABRIC.racks["r1"].optical_ports[0], ports, splitters, loop_leaf=False)


@st.composite
def changes(draw: st.DrawFn) -> tuple[Layout, Layout]:
    """Draw a lit layout and its successor: grown, pruned, with leaves on other outputs, or with other members."""
    old = draw(trees())
    before = layout(old, draw(members([leaf.port.rack for leaf in old.leaves])))
    new = old
    for _ in range(draw(st.integers(0, 3))):
        new = draw(st.sampled_from([_grown, _pruned, _rehung]))(draw, new)
    return before, layout(new, draw(members([leaf.port.rack for leaf in new.leaves])))


def _grown(draw: st.DrawFn, tree: LightTree) -> LightTree:
    have = {leaf.port.rack for leaf in tree.leaves} | {"r1"}
    absent = [rack for rack in FABRIC.racks if rack not in have]
    racks = draw(st.lists(st.sampled_from(absent), max_size=2, unique=True)) if absent else []
    hung = {h.splitter.name for h in tree.splitters}
    free = [s for s in FABRIC.splitters.values() if s.name not in hung]
    added = draw(st.lists(st.sampled_from(free), max_size=1)) if free else []
    return grow(tree, [FABRIC.racks[rack].optical_ports[0] for rack in racks], added) or tree


def _pruned(draw: st.DrawFn, tree: LightTree) -> LightTree:
    racks = [leaf.port.rack for leaf in tree.leaves]
    return prune(tree, draw(st.lists(st.sampled_from(racks), max_size=len(racks) - 1, unique=True)))


def _rehung(draw: st.DrawFn, tree: LightTree) -> LightTree:
    outputs = draw(st.lists(st.sampled_from(sorted(tree.leaf_outputs)), max_size=2, unique=True))
    bad = draw(st.lists(st.sampled_from(good_outputs(tree, [])), max_size=1)) if tree.free_outputs else []
    return rehang(tree, outputs, bad) or tree
