"""The light in the lab: what a data sheet says of each way, and what a break takes away."""

import pytest

from mininet_topos.errors import PlanError
from mininet_topos.faults import fibre
from mininet_topos.plan import LabPlan
from mininet_topos.power import PASS_LOSS_DB, PowerModel, splitter_loss, transmitter_inputs
from tl1_driver.circuits import Circuit, Port

PLAN = LabPlan(racks=6, hosts_per_rack=1, splitters={4: 2})
ROOT, FIRST, SECOND = Circuit(1, 7), Circuit(7, 2), Circuit(10, 11)
DEEP = Circuit(12, 3)
"""Splitter s1 is fed by output 7 and s2 by output 11; legs 7 to 10 and 11 to 14."""


@pytest.fixture
def model():
    return PowerModel(transmitter_inputs(PLAN.ocs_ports, PLAN.splitter_plans), PLAN.splitter_plans)


def test_every_transmitter_shines_and_nothing_else_without_circuits(model):
    assert dict(model([])) == {Port("in", n): 0.0 for n in range(1, 7)}


def test_each_way_costs_what_the_data_sheet_says(model):
    powers = model([ROOT, FIRST, SECOND, DEEP])
    assert powers[Port("out", 7)] == pytest.approx(-1.5)
    assert powers[Port("in", 8)] == pytest.approx(-8.9), "a leg that leads nowhere is lit all the same"
    assert powers[Port("out", 2)] == pytest.approx(-10.4)
    assert powers[Port("out", 3)] == pytest.approx(-(3 * PASS_LOSS_DB + 2 * splitter_loss(4)))
    assert Port("out", 4) not in powers


@pytest.mark.parametrize(("broken", "dark"), [(Port("in", 7), {2}), (Port("out", 2), {2}), (Port("out", 7), {2, 3})])
def test_a_break_darkens_what_lies_behind_it(model, broken, dark):
    circuits = [ROOT, FIRST, SECOND, DEEP]
    before = {port.number for port in model(circuits) if port.side == "out"}
    model.broken.add(broken)
    after = {port.number for port in model(circuits) if port.side == "out"}
    assert (before - after) & {2, 3} == dark and broken not in model(circuits)
    model.broken.clear()
    assert {port.number for port in model(circuits) if port.side == "out"} == before


def test_a_splitter_loses_at_least_what_arithmetic_demands():
    losses = [splitter_loss(ways) for ways in range(2, 65)]
    assert losses == sorted(losses) and losses[3] == splitter_loss(6), "1:5 is cut from 1:6"
    assert splitter_loss(64) > 18


def test_fibres_have_the_controllers_names():
    assert fibre(PLAN, "leg:s1/10") == Port("in", 10)
    assert fibre(PLAN, "splitter:s2") == Port("out", 11)
    assert fibre(PLAN, "port:r3/91") == Port("out", 3)
    with pytest.raises(PlanError, match="no fibre 'leg:s1/11'"):
        fibre(PLAN, "leg:s1/11")
