"""Light trees under a power budget on a declared fabric: cross-connects, margins, reshaping, refusals."""

from __future__ import annotations

from dataclasses import replace

import pytest

from algorithms.b_matching.feasibility import Feasibility
from algorithms.b_matching.group import CompetingGroup, shared_ports
from algorithms.leaf_assignment import Refusal
from algorithms.power_budget import Amplifier, ElementLoss, Passive, Piece, PowerLevel, Transceiver, exactly
from algorithms.splitter_tree import shallowest
from blast_controller.core.light.budgeted_tree import BudgetedTree, TreeEnds, catalog, certify_tree, fit
from blast_controller.core.light.light_tree import build
from blast_controller.core.model.fabric import Fabric, OpticalPort, Rack, Splitter, reached_ports
from blast_controller.core.model.optics import Optics

RACKS = 12
SIZES = (4, 4, 4, 16)
PORTS = [OpticalPort(f"r{n}", 49, "ocs1", n + 1, n + 1) for n in range(RACKS)]
FIRST = [RACKS + 1 + sum(SIZES[:n]) for n in range(len(SIZES))]
SPLITTERS = [
    Splitter(f"s{n}", "ocs1", RACKS + 1 + n, tuple(range(first, first + fan_out)))
    for n, (first, fan_out) in enumerate(zip(FIRST, SIZES, strict=True))
]
FABRIC = Fabric(
    {port.rack: Rack(port.rack, n + 1, (port,)) for n, port in enumerate(PORTS)},
    {},
    {s.name: s for s in SPLITTERS},
    ("ocs1",),
    1e10,
)
LOSS = {4: ElementLoss(6.1, 6.9, 7.4), 16: ElementLoss(12.1, 13.4, 13.9)}


def optics(weak=(), sensitivity=-24.0, overload=0.0):
    def port(p):
        fiber = exactly(6.0 if p.rack in weak else 0.3)
        return Transceiver(p.element, PowerLevel(0, 2, 4), sensitivity, overload, exactly(0.3), fiber)

    return Optics(
        {p.element: port(p) for p in PORTS},
        {
            s.element: Piece(s.element, s.fan_out, LOSS[s.fan_out], price={4: 40.0, 16: 80.0}[s.fan_out])
            for s in SPLITTERS
        },
        {"ocs1": Passive("switch:ocs1", ElementLoss(0.5, 1.5, 1.5), 20.0)},
    )


def ends(receivers, loop_leaf=False):
    return TreeEnds(PORTS[0], tuple(PORTS[1 : receivers + 1]), loop_leaf)


def lit(tree):
    return reached_ports(FABRIC, tree.circuits, tree.root)


@pytest.mark.parametrize("receivers", range(1, RACKS))
@pytest.mark.parametrize("loop_leaf", [False, True])
def test_tree_reaches_all_receivers_and_no_other_port(receivers, loop_leaf):
    tree_ends = ends(receivers, loop_leaf)
    found = fit(optics(overload=10.0), tree_ends, SPLITTERS)
    assert isinstance(found, BudgetedTree)
    two_way = loop_leaf and receivers == 1
    others = {(p.rack, p.port) for p in tree_ends.receivers}
    assert lit(found.tree) == others | ({("r0", 49)} if loop_leaf and not two_way else set())
    if two_way:
        assert reached_ports(FABRIC, found.tree.circuits, tree_ends.receivers[0]) == {("r0", 49)}
    assert certify_tree(optics(overload=10.0), found.tree) == found.certificates
    assert all(c.margin >= 0 for c in found.certificates)


def test_tree_built_without_a_budget_can_be_certified():
    tree = build(PORTS[0], PORTS[1:8], SPLITTERS[:3], loop_leaf=False)
    margins = {c.receiver: c.sensitivity_margin for c in certify_tree(optics(weak=["r1", "r7"]), tree)}
    assert margins["port:r1/49"] == pytest.approx(24 - 0.3 - 1.5 - 7.4 - 1.5 - 6), "on a shallow leaf"
    assert margins["port:r7/49"] == pytest.approx(24 - 0.3 - 2 * (1.5 + 7.4) - 1.5 - 6), "on a deep one"


def test_fit_moves_a_weak_rack_up_with_the_same_splitters():
    chosen = [4, 4, 4]
    plain = build(PORTS[0], PORTS[1:8], SPLITTERS[:3], loop_leaf=False)
    assert min(c.margin for c in certify_tree(optics(weak=["r7"]), plain)) < 0
    found = fit(optics(weak=["r7"]), ends(7), SPLITTERS[:3], shallowest(7, chosen))
    assert isinstance(found, BudgetedTree) and min(c.margin for c in found.certificates) >= 0
    assert {h.splitter.name for h in found.tree.splitters} == {"s0", "s1", "s2"}


def test_fit_finds_another_size_among_all_free_splitters():
    many = [f"r{n}" for n in range(1, 8)]
    small = fit(optics(weak=many), ends(7), SPLITTERS[:3], shallowest(7, [4, 4, 4]))
    assert isinstance(small, Refusal) and small.binding is not None
    assert small.binding.receiver in {f"port:{rack}/49" for rack in many}
    found = fit(optics(weak=many), ends(7), SPLITTERS, shallowest(7, [4, 4, 4]))
    assert isinstance(found, BudgetedTree) and [h.splitter.name for h in found.tree.splitters] == ["s3"]


def test_fit_uses_the_working_outputs_of_a_splitter():
    broken = replace(SPLITTERS[3], outputs=SPLITTERS[3].outputs[1:])
    found = fit(optics(), ends(11), [broken])
    assert isinstance(found, BudgetedTree)
    assert SPLITTERS[3].outputs[0] not in {leaf.feed for leaf in found.tree.leaves}


def test_matching_uses_the_splitters_of_the_catalog():
    trees = catalog(optics(), PORTS, SPLITTERS)
    kernel = Feasibility([1] * RACKS, {4: 3, 16: 1}, trees.choose)
    group = CompetingGroup("g", shared_ports(0, range(1, 9)), 9, 8, 1.0)
    assert kernel.fit(group) == (16,), "one 1:16 is cheaper than three 1:4"
    kernel.pool[16] = 0
    assert kernel.fit(group) == (4, 4, 4)
    dim = catalog(optics(sensitivity=-15.0), PORTS, SPLITTERS)
    kernel = Feasibility([1] * RACKS, {4: 3, 16: 1}, dim.choose)
    assert kernel.fit(group) is None, "two levels, or 1:16, are too dark"


def test_catalog_uses_the_worst_loss_of_the_common_splitter_type():
    known = optics()
    better = replace(known.splitters["splitter:s0"], loss=exactly(5.0))
    amplified = replace(known.splitters["splitter:s2"], amplifier=Amplifier("a", (20, 20, 20), 17))
    mixed = replace(known, splitters=known.splitters | {"splitter:s0": better, "splitter:s2": amplified})
    trees = catalog(mixed, PORTS, SPLITTERS[:3])
    assert trees.choose(7, {4: 3}) == (4, 4) and trees.choose(8, {4: 3}) is None
