"""The power budget in the matching: never easier with fewer splitters, and never infeasible if a tree exists."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.leaf_assignment import Refusal
from algorithms.power_budget import Amplifier, ElementLoss, exactly
from blast_controller.core.light.budgeted_tree import BudgetedTree, TreeEnds
from blast_controller.core.light.light_budget import LightBudget
from tests.support.controller.core import make_fabric
from tests.support.controller.core_power import with_optics

RACKS = 7
losses = st.sampled_from([0.0, 0.0, 0.0, 1.0, 2.5, 5.0, 9.0])


@st.composite
def fabrics(draw):
    """Draw a fabric with ports that differ, and splitters of which some differ, or have an amplifier before them."""
    sizes = draw(st.lists(st.sampled_from([2, 2, 4, 8]), max_size=5))
    fibers = {f"r{n}": draw(losses) for n in range(1, RACKS + 1)}
    stand = {f"r{n}": draw(st.sampled_from([10.0, 10.0, 10.0, -5.0])) for n in range(1, RACKS + 1)}
    sensitivity = draw(st.sampled_from([-24.0, -18.0, -14.0, -11.0]))
    fabric = with_optics(make_fabric(RACKS, sizes), fibers, sensitivity, stand)
    pieces = dict(fabric.optics.splitters)
    for name, piece in pieces.items():
        kind = draw(st.sampled_from(["as it is", "as it is", "worse", "amplified"]))
        if kind == "worse":
            pieces[name] = replace(piece, loss=piece.loss + ElementLoss(0.5, 1.0, 2.0), price=piece.price / 2)
        elif kind == "amplified":
            amplifier = Amplifier(f"amplifier:{name}", (9.0, 10.0, 11.0), 12.0)
            pieces[name] = replace(piece, amplifier=amplifier, price=500.0)
    sent = draw(st.sampled_from([0.0, 1.0]))
    ports = {
        name: replace(port, to_switch=exactly(sent if name.startswith("port:r1/") else 0.3))
        for name, port in fabric.optics.ports.items()
    }
    return replace(fabric, optics=replace(fabric.optics, splitters=pieces, ports=ports))


limits = st.sampled_from([None, None, 1, 2, 3])


@settings(max_examples=60, deadline=None)
@given(fabrics(), limits, st.data())
def test_more_leaves_or_fewer_splitters_are_never_easier(fabric, max_splitters, data):
    choose = LightBudget(fabric).choose("ocs1", max_splitters)
    whole = Counter(s.fan_out for s in fabric.splitters.values())
    for _ in range(8):
        pool = Counter({fan_out: data.draw(st.integers(0, count)) for fan_out, count in whole.items()})
        fewer = Counter({fan_out: data.draw(st.integers(0, count)) for fan_out, count in pool.items()})
        leaves = data.draw(st.integers(2, 12))
        more = data.draw(st.integers(leaves, 14))
        hard, easy = choose(more, fewer), choose(leaves, pool)
        assert hard is None or easy is not None
        for pieces, held in ((hard, fewer), (easy, pool)):
            assert pieces is None or not Counter(pieces) - held
            assert pieces is None or max_splitters is None or len(pieces) <= max_splitters


@settings(max_examples=80, deadline=None)
@given(fabrics(), limits, st.booleans(), st.data())
def test_matching_finds_splitters_wherever_a_tree_exists(fabric, max_splitters, loop_leaf, data):
    budget = LightBudget(fabric)
    ports = fabric.ports_on("ocs1")
    splitters = (
        data.draw(st.lists(st.sampled_from(list(fabric.splitters.values())), unique=True)) if (fabric.splitters) else []
    )
    root, *receivers = data.draw(st.permutations(ports))[: data.draw(st.integers(2, RACKS))]
    ends = TreeEnds(root, tuple(receivers), loop_leaf)
    leaves = len(receivers) + (1 if loop_leaf and len(receivers) > 1 else 0)
    pieces = budget.choose("ocs1", max_splitters)(leaves, Counter(s.fan_out for s in splitters)) if leaves > 1 else ()
    left = {fan_out: [s for s in splitters if s.fan_out == fan_out] for fan_out in set(pieces or ())}
    matched = [left[fan_out].pop() for fan_out in pieces or ()]
    found = budget.tree(ends, matched, splitters, max_splitters)
    if isinstance(found, BudgetedTree):
        assert pieces is not None
        assert all(certificate.holds for certificate in budget.certificates(found.tree))
        assert max_splitters is None or len(found.tree.splitters) <= max_splitters
    else:
        assert isinstance(found, Refusal) and found.sentence
