"""The power monitors of the emulated hardware under each fault."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from optical_switch.emulator.faults import Faults
from optical_switch.emulator.light import PowerMonitors
from optical_switch.model import Circuit, Port
from tests.support.emulated_hardware import HandClock

CIRCUITS = (Circuit(1, 2), Circuit(2, 1))


def lit(circuits: Sequence[Circuit]) -> Mapping[Port, float]:
    """Return 0 dBm at inputs 1 to 3, and -2 dBm at the outputs that they reach."""
    entering = {Port("in", number): 0.0 for number in (1, 2, 3)}
    return entering | {Port("out", circuit.output): -2.0 for circuit in circuits}


def powers(faults: Faults) -> dict[Port, float]:
    return PowerMonitors(lit, faults, HandClock().clock.now).powers(CIRCUITS)


def test_power_without_faults_is_that_of_the_model() -> None:
    assert powers(Faults()) == lit(CIRCUITS)


def test_meter_error_changes_readings_of_lit_ports_only() -> None:
    errors = {Port("in", 1): 3.0, Port("out", 1): -1.0, Port("in", 4): 50.0}
    read = powers(Faults(power_error_db=errors))
    assert (read[Port("in", 1)], read[Port("out", 1)], read[Port("out", 2)]) == (3.0, -3.0, -2.0)
    assert Port("in", 4) not in read


def test_extra_loss_lowers_power_at_output_of_its_circuit() -> None:
    read = powers(Faults(extra_loss_db={Circuit(1, 2): 6.0, Circuit(3, 1): 9.0}))
    assert read == {**lit(CIRCUITS), Port("out", 2): -8.0}


@pytest.mark.parametrize("fault", ["dead_ports", "dark_ports"])
def test_dead_or_dark_input_darkens_its_output(fault: str) -> None:
    read = powers(Faults(**{fault: {Port("in", 1)}}))
    assert set(lit(CIRCUITS)) - set(read) == {Port("in", 1), Port("out", 2)}


@pytest.mark.parametrize("fault", ["dead_ports", "dark_ports"])
def test_dead_or_dark_output_is_dark_alone(fault: str) -> None:
    read = powers(Faults(**{fault: {Port("out", 1)}}))
    assert set(lit(CIRCUITS)) - set(read) == {Port("out", 1)}


def test_drift_grows_from_first_measurement() -> None:
    clock = HandClock()
    monitors = PowerMonitors(lit, Faults(drift_db_per_second={Port("out", 1): 0.5}), clock.clock.now)
    assert monitors.powers(CIRCUITS)[Port("out", 1)] == -2.0
    clock.time += 4
    assert monitors.powers(CIRCUITS)[Port("out", 1)] == -4.0


def test_dead_input_is_reported_once_and_again_when_lit() -> None:
    faults = Faults()
    monitors = PowerMonitors(lit, faults, HandClock().clock.now)
    assert monitors.changes(CIRCUITS) == ([], [])
    faults.dead_ports = {Port("in", 2)}
    assert monitors.changes(CIRCUITS) == ([Port("in", 2)], [])
    assert monitors.changes(CIRCUITS) == ([], [])
    faults.dead_ports = set()
    assert monitors.changes(CIRCUITS) == ([], [Port("in", 2)])
