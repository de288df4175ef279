"""Static trees of a lab's plan: numbers, names, the controller's configuration, and impossible trees."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_controller.configuration.reading import parse
from blast_controller.core.model.fabric import StaticTree
from mininet_topos.kernel.errors import PlanError
from mininet_topos.kernel.names import Names, owner
from mininet_topos.lab.controller_config import Endpoints, render
from mininet_topos.topology.plan import LabPlan, preset
from mininet_topos.topology.static_tree import MAX_TREES

ENDPOINTS = Endpoints("127.0.0.1:9090", "127.0.0.1:6653", "127.0.0.1:10033")


def test_controller_configuration_has_static_trees_of_preset():
    config = parse(render(preset("static"), ENDPOINTS))
    assert config.build_fabric().static_trees == {
        "fixed1": StaticTree("fixed1", "r1", 95, None, {"r2": 95, "r3": 95}, frozenset({"r4h1"})),
        "fixed2": StaticTree("fixed2", None, 0, "r2h2", {"r1": 96, "r4": 96}, frozenset({"r3h2"})),
    }
    assert config.build_fabric().hosts["r2h2"].ip == "10.1.2.2", "the host at a root sends from its card in the tree"
    assert config.build_fabric().hosts["r4h1"].ip == "10.0.4.1", "the others by their ToR"


@st.composite
def plans(draw):
    """Labs of four racks with up to four trees, no host at the end of two of them."""
    hosts = draw(st.integers(1, 3))
    free = [f"r{rack}h{host}" for rack in range(1, 5) for host in range(1, hosts + 1)]
    trees = []
    for _ in range(draw(st.integers(0, MAX_TREES))):
        ends = draw(st.lists(st.sampled_from(["r1", "r2", "r3", "r4", *free]), min_size=3, max_size=6, unique=True))
        free = [host for host in free if host not in ends]
        trees.append(tuple(ends))
    return LabPlan(racks=4, hosts_per_rack=hosts, shared_datapath=draw(st.booleans()), static_trees=tuple(trees))


@given(plans())
def test_controller_configuration_matches_static_trees_of_plan(plan):
    fabric = parse(render(plan, ENDPOINTS)).build_fabric()
    assert len(fabric.static_trees) == len(plan.static_trees)
    for tree, names in zip(fabric.static_trees.values(), plan.static_trees, strict=True):
        assert names[0] == (tree.root_rack or tree.root_host)
        assert set(names[1:]) == set(tree.leaf_ports) | tree.leaf_hosts


@given(plans())
def test_kernel_names_are_short_unique_and_identify_lab(plan):
    names, found = Names("bfff"), []
    for tree in plan.static_tree_plans:
        found += [names.static_fiber(tree.number, end.fiber) for end in tree.ends]
        for end in tree.ends:
            at_tor = names.static_at_tor(end.rack, tree.number)
            found.append(at_tor if end.host is None else names.static_at_host(end.rack, end.host))
    assert len(set(found)) == len(found)
    assert all(len(name) <= 15 and owner(name) == "bfff" for name in found)


@pytest.mark.parametrize(
    ("trees", "sentence"),
    [
        ([("r1", "r2")], "has 2 ends, but needs a root and 2 to 64 leaves"),
        ([("r1", *(f"r{n}h1" for n in range(2, 67)))], "has 66 ends"),
        ([()], "has 0 ends"),
        ([("r1", "r2", "r2")], "ends at one place twice"),
        ([("r1", "r2", "r5")], "ends at r5, but the lab has racks 1 to 4 of 2 hosts"),
        ([("r1", "r2", "r3h3")], "ends at r3h3, but the lab has racks 1 to 4 of 2 hosts"),
        ([("r1", "r2", "r0")], "'r0' is no end of a static tree: name a rack or a host, like r1 or r1h2"),
        ([("r1", "r2", "r3\n")], "is no end of a static tree"),
        ([("r1", "r2h1", "r3"), ("r2", "r2h1", "r3")], "end at r2h1 twice, but a host has one card for them"),
        ([("r1", "r2", "r3")] * 5, "there are 5 static trees, but a lab can have 0 to 4"),
    ],
)
def test_plan_rejects_impossible_static_trees(trees, sentence):
    with pytest.raises(PlanError, match=re.escape(sentence)):
        LabPlan(racks=4, hosts_per_rack=2, static_trees=tuple(trees))


def test_static_preset_with_fewer_racks_names_missing_end():
    with pytest.raises(PlanError, match="ends at r3, but the lab has racks 1 to 2"):
        preset("static", racks=2)
    assert preset("static", racks=2, static_trees=()).racks == 2
