"""The power model of the lab: the losses of a data sheet, and the effects of broken and dimmed fibers."""

import asyncio

import pytest

from blast_base.endpoint import Endpoint
from mininet_topos.kernel.errors import HostError, PlanError, ProcessError
from mininet_topos.kernel.names import Names
from mininet_topos.topology.faults import FaultInjector, FaultServer, fiber
from mininet_topos.topology.plan import LabPlan
from mininet_topos.topology.power import SENSITIVITY_DBM, PowerModel, splitter_loss, transmitter_inputs
from mininet_topos.topology.switch_servers import ServedSwitch
from optical_switch.emulator.crossbar import Crossbar
from optical_switch.emulator.hardware import PASS_LOSS_DB, OpticalHardware
from optical_switch.model import Circuit, Port

PLAN = LabPlan(racks=6, hosts_per_rack=1, splitters={4: 2})
ROOT, FIRST, SECOND = Circuit(1, 7), Circuit(7, 2), Circuit(10, 11)
DEEP = Circuit(12, 3)
"""Splitter s1 is fed by output 7 and s2 by output 11; outputs 7 to 10 and 11 to 14."""


@pytest.fixture
def model():
    return PowerModel(transmitter_inputs(PLAN.ocs_ports, PLAN.splitter_plans), PLAN.splitter_plans)


def test_power_model_applies_losses_of_data_sheet(model):
    powers = model([ROOT, FIRST, SECOND, DEEP])
    assert powers[Port("out", 7)] == pytest.approx(-1.5)
    assert powers[Port("in", 8)] == pytest.approx(-8.9), "an unconnected output is lit as well"
    assert powers[Port("out", 2)] == pytest.approx(-10.4)
    assert powers[Port("out", 3)] == pytest.approx(-(3 * PASS_LOSS_DB + 2 * splitter_loss(4)))
    assert Port("out", 4) not in powers


@pytest.mark.parametrize(("broken", "dark"), [(Port("in", 7), {2}), (Port("out", 2), {2}), (Port("out", 7), {2, 3})])
def test_broken_fiber_darkens_ports_behind_it(model, broken, dark):
    circuits = [ROOT, FIRST, SECOND, DEEP]
    before = {port.number for port in model(circuits) if port.side == "out"}
    model.broken.add(broken)
    after = {port.number for port in model(circuits) if port.side == "out"}
    assert (before - after) & {2, 3} == dark and broken not in model(circuits)
    model.broken.clear()
    assert {port.number for port in model(circuits) if port.side == "out"} == before


def test_splitter_loss_grows_with_fan_out():
    losses = [splitter_loss(fan_out) for fan_out in range(2, 65)]
    assert losses == sorted(losses) and losses[3] == splitter_loss(6), "1:5 is cut from 1:6"
    assert splitter_loss(64) > 18


def test_fibers_have_names_of_controller():
    assert fiber(PLAN, "output:s1/10") == Port("in", 10)
    assert fiber(PLAN, "splitter:s2") == Port("out", 11)
    assert fiber(PLAN, "port:r3/91") == Port("out", 3)
    with pytest.raises(PlanError, match="no fiber 'output:s1/11'"):
        fiber(PLAN, "output:s1/11")


def test_dimmed_fiber_reduces_power_of_ports_behind_it(model):
    circuits = [ROOT, FIRST, SECOND, DEEP]
    before = dict(model(circuits))
    model.dimmed[Port("in", 10)] = 6.0
    after = model(circuits)
    behind = {port for port in before if after[port] != before[port]}
    assert behind == {
        Port("in", 10),
        Port("out", 11),
        Port("out", 3),
        *(Port("in", output) for output in range(11, 15)),
    }
    assert all(before[port] - after[port] == pytest.approx(6.0) for port in behind)
    assert model.too_dark(circuits) == set()


def test_leaf_below_sensitivity_is_dark_but_still_measured(model):
    circuits = [ROOT, FIRST, SECOND, DEEP]
    spare = model(circuits)[Port("out", 3)] - SENSITIVITY_DBM
    model.dimmed[Port("out", 7)] = spare - 0.01
    assert model.too_dark(circuits) == set()
    model.dimmed[Port("out", 7)] = spare + 0.01
    assert model.too_dark(circuits) == {Port("out", 3)}, "the leaf behind one splitter has enough power"
    assert model(circuits)[Port("out", 3)] == pytest.approx(SENSITIVITY_DBM - 0.01)


class Packets:
    """The devices that `tc` has blocked; with `refuse`, the kernel rejects every change."""

    def __init__(self):
        self.closed, self.refuse = set(), False

    def __call__(self, lines):
        if self.refuse:
            raise HostError("no")
        for line in lines:
            device = line.split()[3]
            (self.closed.add if line.endswith("pfifo limit 0") else self.closed.discard)(device)


async def no_light_paths(removed, added):
    return None


class LossBench:
    """A fault server of a switch that records its alarms, and an injector of its faults."""

    def __init__(self, model, path):
        self.packets, self.reports = Packets(), []
        ports = PLAN.ocs_ports
        self.hardware = OpticalHardware(Crossbar(ports, ports), no_light_paths, connect_seconds=0.0, power=model)
        self.hardware.listeners.append(lambda: self.reports.append("readings changed"))
        served = ServedSwitch(Endpoint("127.0.0.1", 1), self.hardware, lambda: None, self.report)
        self.server = FaultServer(served, model, Names("b0f1"), self.packets)
        self.lab = FaultInjector(PLAN, path)

    def report(self, output, lit):
        self.reports.append((output, lit))

    def follow(self, *circuits):
        """Set these circuits, and no others."""
        self.hardware.crossbar.change(self.hardware.crossbar.circuits, circuits)
        self.server.follow(circuits)


@pytest.fixture
async def bench(model, tmp_path):
    bench = LossBench(model, tmp_path / "faults")
    server = await bench.server.serve(tmp_path / "faults", PLAN.ocs_ports)
    yield bench
    server.close()
    await server.wait_closed()


async def test_fault_server_blocks_leaf_below_sensitivity_and_restores_it(bench):
    leaf = Names("b0f1").ocs_port(3)
    bench.follow(ROOT, FIRST, SECOND, DEEP)
    assert bench.packets.closed == set()
    await asyncio.to_thread(bench.lab.dim_fiber, "splitter:s2", 20.0)
    assert bench.packets.closed == {leaf} and bench.reports == ["readings changed", (3, False)]
    await asyncio.to_thread(bench.lab.dim_fiber, "splitter:s2", 0.0)
    assert bench.packets.closed == set() and bench.reports[2:] == ["readings changed", (3, True)]


async def test_new_circuit_over_dimmed_fiber_is_blocked_at_once(bench):
    await asyncio.to_thread(bench.lab.dim_fiber, "output:s1/7", 30.0)
    assert bench.packets.closed == set(), "no receiver is connected to it"
    bench.follow(ROOT, FIRST)
    assert bench.packets.closed == {Names("b0f1").ocs_port(2)}
    bench.follow(ROOT, Circuit(8, 2))
    assert bench.packets.closed == set(), "over another output there is light"


async def test_break_and_dimming_of_one_fiber_end_independently(bench):
    bench.follow(ROOT, FIRST)
    await asyncio.to_thread(bench.lab.dim_fiber, "output:s1/7", 30.0)
    await asyncio.to_thread(bench.lab.break_fiber, "output:s1/7")
    assert bench.packets.closed == {Names("b0f1").splitter_side(7)}, "where there is no light there is no leaf to close"
    await asyncio.to_thread(bench.lab.mend_fiber, "output:s1/7")
    assert bench.packets.closed == {Names("b0f1").ocs_port(2)}
    await asyncio.to_thread(bench.lab.dim_fiber, "output:s1/7", 0.0)
    assert bench.packets.closed == set()


async def test_raised_loss_is_measured_at_circuit_and_reduces_power_behind_it(bench, model):
    bench.follow(ROOT, FIRST, SECOND, DEEP)
    before = bench.hardware.powers()
    await asyncio.to_thread(bench.lab.raise_loss, "output:s1/10", 6.0)
    losses, after = bench.hardware.losses(), bench.hardware.powers()
    assert {circuit for circuit, loss in losses.items() if loss > PASS_LOSS_DB} == {SECOND}
    assert losses[SECOND] == pytest.approx(PASS_LOSS_DB + 6.0)
    behind = {Port("out", 11), Port("out", 3), *(Port("in", output) for output in range(11, 15))}
    assert {port for port in before if after[port] != before[port]} == behind
    assert all(before[port] - after[port] == pytest.approx(6.0) for port in behind), "no loss is counted twice"
    await asyncio.to_thread(bench.lab.raise_loss, "port:r3/91", 2.0)
    assert bench.hardware.losses()[DEEP] == pytest.approx(PASS_LOSS_DB + 2.0)
    for element in ("output:s1/10", "port:r3/91"):
        await asyncio.to_thread(bench.lab.raise_loss, element, 0.0)
    assert bench.hardware.powers() == before and bench.hardware.faults.extra_loss_db == {}


async def test_raised_loss_blocks_leaf_below_sensitivity_until_it_uses_another_output(bench):
    bench.follow(ROOT, FIRST)
    await asyncio.to_thread(bench.lab.raise_loss, "output:s1/7", 30.0)
    assert bench.packets.closed == {Names("b0f1").ocs_port(2)} and bench.reports[-1] == (2, False)
    bench.follow(ROOT, Circuit(8, 2))
    assert bench.packets.closed == set()


async def test_refused_or_invalid_fault_changes_nothing(bench, model):
    bench.follow(ROOT, FIRST)
    bench.packets.refuse = True
    for inject in (bench.lab.dim_fiber, bench.lab.raise_loss):
        with pytest.raises(ProcessError, match="refused a fault"):
            await asyncio.to_thread(inject, "output:s1/7", 30.0)
        for decibels in (-1.0, float("inf"), float("nan")):
            with pytest.raises(ProcessError, match="refused a fault"):
                await asyncio.to_thread(inject, "output:s1/7", decibels)
    assert (model.dimmed, model.raised, bench.hardware.faults.extra_loss_db) == ({}, {}, {})
