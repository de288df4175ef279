"""Measured insertion loss of cross-connects: in the power budget, and as a reason to move a branch."""

from __future__ import annotations

import pytest

from blast_controller.core.light.fault_localizer import CIRCUIT_FAILED, TOO_MUCH_LOSS
from blast_controller.core.model.events import CircuitFailed, LossMeasured
from blast_controller.core.model.fabric import CrossConnect
from blast_controller.core.model.part_states import PartState
from tests.support.controller.core import make_fabric, multicast, ready_world
from tests.support.controller.core_power import with_optics

ACCURACY = 0.5


def world_of(splitters):
    world = ready_world(with_optics(make_fabric(8, splitters)))
    world.granted(multicast("a", "r1h1", ["r2h1", "r3h1"]))
    world.commands.clear()
    return world


def tree_of(world):
    return world.core.view.reservation(world.part().reservation).layout.tree


def circuit_to(world, rack: str) -> CrossConnect:
    leaf = tree_of(world).leaf_of(rack)
    return CrossConnect(leaf.port.switch, leaf.feed, leaf.port.output)


def planned(world) -> float:
    return world.fabric.optics.passes["ocs1"].loss.worst


def margins(world):
    return {cert.receiver: cert.sensitivity_margin for cert in world.core._parts.budget.certificates(tree_of(world))}


def test_loss_raised_while_lit_moves_the_branch_to_another_output():
    world = world_of([4])
    before = circuit_to(world, "r2")
    world.run(LossMeasured(before, planned(world) + 6.0, ACCURACY))
    after = circuit_to(world, "r2")
    assert after.output == before.output and after.input != before.input
    assert world.part().state is PartState.ACTIVE
    assert world.kinds("a")[-1] == "changed"
    reason = world.core.view.quarantined[f"output:s1/{before.input}"]
    limit = planned(world)
    assert reason.startswith(f"{TOO_MUCH_LOSS} ({limit + 6.0:.1f} dB, planned at most {limit:.1f} dB)")


def test_loss_that_no_output_avoids_is_explained():
    world = world_of([2])
    circuit = circuit_to(world, "r2")
    world.run(LossMeasured(circuit, planned(world) + 6.0, ACCURACY))
    assert world.reason().startswith(TOO_MUCH_LOSS) and world.reason().endswith("no free splitter output to replace it")
    assert circuit_to(world, "r2") == circuit and world.part().state is PartState.ACTIVE


def test_loss_before_the_splitter_concerns_all_leaves():
    world = world_of([4])
    tree = tree_of(world)
    circuit = CrossConnect(tree.switch, tree.root.input, tree.splitters[0].splitter.input)
    world.run(LossMeasured(circuit, planned(world) + 6.0, ACCURACY))
    assert world.core.view.quarantined.keys() == {"splitter:s1"}
    assert "port:r2/50, port:r3/50" in world.reason()


@pytest.mark.parametrize("loss", [0.0, 0.25])
def test_loss_within_the_plan_and_its_accuracy_moves_nothing(loss: float):
    world = world_of([4])
    before = tree_of(world)
    world.run(LossMeasured(circuit_to(world, "r2"), planned(world) + loss, ACCURACY))
    assert tree_of(world) == before and not world.core.view.quarantined


def test_measured_loss_replaces_the_planned_one_in_the_budget():
    world = world_of([4])
    before = margins(world)
    circuit = circuit_to(world, "r2")
    world.run(LossMeasured(circuit, planned(world) - 0.2, 0.1))
    after = margins(world)
    assert after["port:r2/50"] == pytest.approx(before["port:r2/50"] + 0.1)
    assert after["port:r3/50"] == before["port:r3/50"]


def test_same_loss_reported_again_is_no_second_fault():
    world = world_of([4])
    circuit = circuit_to(world, "r2")
    world.run(LossMeasured(circuit, planned(world) + 6.0, ACCURACY))
    moved, quarantined = tree_of(world), dict(world.core.view.quarantined)
    world.run(LossMeasured(circuit, planned(world) + 6.0, ACCURACY))
    assert tree_of(world) == moved and world.core.view.quarantined == quarantined


def test_failed_cross_connect_moves_its_branch():
    world = world_of([4])
    before = circuit_to(world, "r3")
    world.run(CircuitFailed(before, "output 3 has failed"))
    assert circuit_to(world, "r3").input != before.input
    reason = world.core.view.quarantined[f"output:s1/{before.input}"]
    assert reason.startswith(f"{CIRCUIT_FAILED} (output 3 has failed)")


def test_loss_without_a_power_budget_is_ignored():
    world = ready_world(make_fabric(4, [4]))
    world.granted(multicast("a", "r1h1", ["r2h1", "r3h1"]))
    before = tree_of(world)
    world.run(LossMeasured(circuit_to(world, "r2"), 40.0, ACCURACY))
    assert tree_of(world) == before and not world.core.view.quarantined
