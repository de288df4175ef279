"""The rows of STATE_DB: pure, from what CONFIG_DB asks for and what the hardware reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from optical_switch.emulator.crossbar import ends
from optical_switch.emulator.gnmi_target.assignment import POWERED_OFF, Assignment
from optical_switch.emulator.gnmi_target.edits import RowEdit
from optical_switch.emulator.gnmi_target.ports import PortLayout, circuit_id, port_name
from optical_switch.emulator.gnmi_target.tables import (
    CROSS_CONNECT_STATES,
    FACTORY_LOSSES,
    PORT_STATES,
    Fields,
    RowId,
    Rows,
)
from optical_switch.emulator.hardware import PASS_LOSS_DB, OpticalHardware
from optical_switch.model import Circuit, CircuitReading, CircuitState, Port

TUNED_WITHIN_DB = 0.5
"""A port is `connected` if the insertion loss is that close to its target, else `tuning` (model `sonic-ocs`)."""
FREQUENCY_THZ = "229.100"
"""Frequency of the factory measurement: the example of SONiC's design of the OCS, in the O band."""
TEMPERATURE_C = "25.00"
ACCURACY_DB = "0.10"
CONNECTOR = "LC UPC"
PINS = {"in": "2", "out": "1"}
"""Fiber of a duplex connector at which a side is, as in SONiC's design of the OCS."""


@dataclass(frozen=True, slots=True)
class HardwareReport:
    """The report of the hardware.

    Parameters
    ----------
    readings : Mapping[Circuit, CircuitReading]
        Its circuits.
    losses : Mapping[Circuit, float]
        Loss of each circuit that passes light, in dB.
    dead_ports : frozenset[Port]
        Ports that have failed.
    refused : Mapping[Circuit, frozenset[Port]]
        Circuits that it has refused or failed to set, with the ports that it blames.
    """

    readings: Mapping[Circuit, CircuitReading] = field(default_factory=dict)
    losses: Mapping[Circuit, float] = field(default_factory=dict)
    dead_ports: frozenset[Port] = frozenset()
    refused: Mapping[Circuit, frozenset[Port]] = field(default_factory=dict)


def report_of(hardware: OpticalHardware, refused: Mapping[Circuit, frozenset[Port]]) -> HardwareReport:
    """Return the report of the hardware as it is now."""
    readings = {reading.circuit: reading for reading in hardware.readings()}
    return HardwareReport(readings, hardware.losses(), frozenset(hardware.faults.dead_ports), dict(refused))


def state_rows(layout: PortLayout, assignment: Assignment, report: HardwareReport) -> Rows:
    """Return the rows of the tables of ports and cross-connects.

    A circuit that is no longer in CONFIG_DB has its row until the hardware has removed it.
    """
    rows: dict[RowId, Fields] = {}
    ports = {port: _idle(port, assignment, report) for port in layout.ports}
    leftover = [circuit for circuit in report.readings if circuit not in assignment.circuits]
    # Circuits of CONFIG_DB last: a port that moves from one circuit to another shows the new one.
    for circuit in (*leftover, *assignment.circuits):
        rows[_row(circuit_id(circuit))] = _cross_connect(circuit, report)
        for port, fields in _sides(circuit, report):
            ports[port] = ports[port] | fields
    rows |= {_row(name): {"status": "disabled"} for name in assignment.blocked.values()}
    rows |= {_row(name): {"status": "invalid"} for name in assignment.invalid}
    return rows | {RowId(PORT_STATES.name, (port_name(port),)): fields for port, fields in ports.items()}


def factory_rows(layout: PortLayout) -> Iterator[RowEdit]:
    """Yield the factory's measurement of each possible circuit."""
    fields = {"loss_dB": f"{PASS_LOSS_DB:.2f}", "accuracy_dB": ACCURACY_DB}
    for circuit in layout.circuits:
        yield RowEdit(RowId(FACTORY_LOSSES.name, (circuit_id(circuit), FREQUENCY_THZ, TEMPERATURE_C)), fields)


def differences(before: Rows, after: Rows) -> list[RowEdit]:
    """Return the edits that make rows of others."""
    edits = [RowEdit(row, is_delete=True) for row in before if row not in after]
    for row, fields in after.items():
        old = before.get(row, {})
        if old != fields:
            edits.append(RowEdit(row, fields, frozenset(old.keys() - fields.keys())))
    return edits


def _row(name: str) -> RowId:
    return RowId(CROSS_CONNECT_STATES.name, (name,))


def _idle(port: Port, assignment: Assignment, report: HardwareReport) -> dict[str, str]:
    """Return the fields of a port in no circuit."""
    if assignment.overrides.get(port) == POWERED_OFF:
        status = "powered_off"
    else:
        status = "failed" if port in report.dead_ports else "blocked"
    return {"connector_type": CONNECTOR, "connector_pin": PINS[port.side], "oper_status": status}


def _cross_connect(circuit: Circuit, report: HardwareReport) -> dict[str, str]:
    """Return the state of a cross-connect; its status is `disabled` if the hardware has refused it."""
    if circuit in report.refused and circuit not in report.readings:
        return {"status": "disabled"}
    fields = {"status": "enabled", "physical_path@": f"A-{circuit.input},B-{circuit.output}"}
    if circuit in report.losses and _state(circuit, report) is CircuitState.CONNECTED:
        fields["insertion_loss_dB"] = f"{report.losses[circuit]:.2f}"
    return fields


def _sides(circuit: Circuit, report: HardwareReport) -> Iterator[tuple[Port, dict[str, str]]]:
    """Yield the fields of both ports of a circuit that differ from those of idle ports."""
    a_side, b_side = ends(circuit)
    if circuit in report.refused and circuit not in report.readings:
        yield from ((port, {"oper_status": "failed"}) for port in report.refused[circuit])
        return
    for port, other in ((a_side, b_side), (b_side, a_side)):
        fields = {"target_simplex_port_id": port_name(other)}
        status = _side_status(port, circuit, report)
        yield port, fields if status is None else fields | {"oper_status": status}


def _side_status(port: Port, circuit: Circuit, report: HardwareReport) -> str | None:
    """Return the `oper_status` of one port of a circuit; None: as that of an idle port."""
    state = _state(circuit, report)
    if state is CircuitState.FAILED:
        return "failed" if port in report.dead_ports else None
    loss = report.losses.get(circuit)
    is_tuned = loss is None or abs(loss - PASS_LOSS_DB) <= TUNED_WITHIN_DB
    return "connected" if state is CircuitState.CONNECTED and is_tuned else "tuning"


def _state(circuit: Circuit, report: HardwareReport) -> CircuitState:
    """Return how far a circuit is; one that the hardware does not list yet is about to be set."""
    reading = report.readings.get(circuit)
    return CircuitState.TUNING if reading is None else reading.state
