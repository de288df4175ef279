"""Steps between layouts, one case each; `tests/property/test_layout_steps.py` has them at random."""

from __future__ import annotations

from blast_controller.core.light.layout import NOTHING, Holding, Step, both, everything, step_between
from blast_controller.core.light.light_tree import build, good_legs, grow, prune, rehang
from blast_controller.core.model.commands import Forward
from blast_controller.core.model.fabric import CrossConnect
from tests.support.core import make_fabric

A, B = CrossConnect("ocs1", 1, 5), CrossConnect("ocs1", 2, 6)
ELSEWHERE = CrossConnect("ocs1", 1, 7)
FABRIC = make_fabric(5, [4, 2])
PORTS = [FABRIC.racks[f"r{n}"].optical_ports[0] for n in range(1, 6)]
QUAD, PAIR = FABRIC.splitters.values()


def rule(*outputs, port=1, group="239.77.0.1"):
    return Forward(port, "10.0.1.1", group, outputs)


def at(*forwards, datapath=1):
    return Holding((), {datapath: forwards})


# --------------------------------------------------------------------------------------------------- steps


def test_from_nothing_everything_comes_and_to_nothing_everything_goes():
    holding = Holding((A, B), {1: (rule(2),)})
    assert step_between(NOTHING, holding) == Step((), (A, B), {}, {1: (rule(2),)})
    assert step_between(holding, NOTHING) == Step((A, B), (), {1: (rule(2),)}, {})


def test_a_circuit_that_is_displaced_goes_before_the_other_comes():
    assert step_between(Holding((A,), {}), Holding((ELSEWHERE,), {})) == Step((A,), (ELSEWHERE,), {}, {})


def test_a_rule_with_other_outputs_replaces_and_is_not_removed_first():
    """Without a rule the packets of that moment would be lost."""
    assert step_between(at(rule(2)), at(rule(2, 3))) == Step((), (), {}, {1: (rule(2, 3),)})


def test_a_rule_with_another_match_is_one_more():
    moved = rule(2, port=9)
    assert step_between(at(rule(2)), at(moved)) == Step((), (), {1: (rule(2),)}, {1: (moved,)})


def test_a_step_names_the_devices_that_have_something_to_do():
    step = step_between(Holding((A,), {1: (rule(2),), 3: (rule(4),)}), Holding((), {1: (rule(2, 3),), 3: (rule(4),)}))
    assert step.devices == {"ocs1", 1}
    assert step.only("ocs1") == Step((A,), (), {}, {})
    assert step.only(1) == Step((), (), {}, {1: (rule(2, 3),)})
    assert step.only(3) == Step((), (), {}, {})


# ---------------------------------------------------------------------------------------------------- both


def test_both_serves_the_members_of_both():
    assert both(at(rule(2)), at(rule(3))) == at(rule(2, 3))
    assert both(at(rule(2)), at(rule(3), datapath=2)).forwards == {1: (rule(2),), 2: (rule(3),)}


def test_both_gives_way_to_the_new_where_an_input_or_output_is_wanted_twice():
    assert both(Holding((A, B), {}), Holding((ELSEWHERE,), {})).circuits == (B, ELSEWHERE)
    same_output = CrossConnect("ocs1", 9, 5)
    assert both(Holding((A, B), {}), Holding((same_output,), {})).circuits == (B, same_output)


def test_the_same_numbers_on_another_switch_are_not_in_the_way():
    other = CrossConnect("ocs2", 1, 5)
    assert both(Holding((A,), {}), Holding((other,), {})).circuits == (A, other)


def test_everything_has_what_any_has_once():
    union = everything([Holding((A, B), {1: (rule(2),)}), Holding((A, ELSEWHERE), {1: (rule(2, 3),), 2: (rule(4),)})])
    assert union == Holding((A, B, ELSEWHERE), {1: (rule(2, 3),), 2: (rule(4),)})


# --------------------------------------------------------------------------------------------------- trees


def test_a_tree_is_connected_from_its_root_on():
    tree = build(PORTS[0], PORTS[1:], [PAIR, QUAD], loop_leaf=False)
    assert tree.circuits[0] == CrossConnect("ocs1", PORTS[0].input, QUAD.input)
    assert tree.circuits[1] == CrossConnect("ocs1", QUAD.outputs[0], PAIR.input)
    assert {c.output for c in tree.circuits[2:]} == {port.output for port in PORTS[1:]}


def test_growing_leaves_bad_legs_open():
    tree = build(PORTS[0], PORTS[1:3], [QUAD], loop_leaf=False)
    grown = grow(tree, [PORTS[3]], [], bad_legs=[QUAD.outputs[2]])
    assert grown.leaves[-1].feed == QUAD.outputs[3]
    assert good_legs(grown, [QUAD.outputs[2]]) == []
    assert grow(grown, [PORTS[4]], [], bad_legs=[QUAD.outputs[2]]) is None


def test_a_splitter_is_not_hung_on_a_bad_leg():
    tree = build(PORTS[0], PORTS[1:3], [QUAD], loop_leaf=False)
    assert grow(tree, PORTS[3:5], [PAIR], bad_legs=[QUAD.outputs[2]]).splitters[-1].feed == QUAD.outputs[3]
    assert grow(tree, PORTS[3:5], [PAIR], bad_legs=QUAD.outputs[2:]) is None


def test_rehanging_moves_only_what_is_dark():
    tree = build(PORTS[0], PORTS[1:3], [QUAD], loop_leaf=False)
    dark = PORTS[1].output
    step = step_between(Holding(tree.circuits, {}), Holding(rehang(tree, [dark], []).circuits, {}))
    assert step.disconnect == (CrossConnect("ocs1", QUAD.outputs[0], dark),)
    assert step.connect == (CrossConnect("ocs1", QUAD.outputs[2], dark),)
    assert rehang(tree, [dark], QUAD.outputs) is None


def test_pruning_takes_splitters_that_serve_nobody():
    tree = build(PORTS[0], PORTS[1:], [QUAD, PAIR], loop_leaf=False)
    behind = {leaf.port.rack for leaf in tree.leaves if leaf.feed in PAIR.outputs}
    assert [h.splitter for h in prune(tree, behind).splitters] == [QUAD]
