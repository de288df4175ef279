"""The report of a probe as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

from blast_client.cli.text_table import text_table
from blast_controller.cli.switch.probe.report import SwitchReport
from blast_controller.cli.switch.probe.settings import place_of
from optical_switch.model import Circuit, CircuitReading, Port
from optical_switch.printable import printable
from optical_switch.session import Capabilities

_LIGHT = {"none": "not reported", "powers": "power meters", "states": "state of each circuit"}
_CIRCUIT_HEADER = ("INPUT", "OUTPUT", "STATE", "IN DBM", "OUT DBM", "LOSS DB", "OWNER", "NOTE")
_PORT_HEADER = ("PORT", "INPUT", "DBM", "LABEL", "OUTPUT", "DBM", "LABEL")


def json_report(report: SwitchReport) -> str:
    """Return a report as an indented JSON object."""
    readings = report.readings
    counts = report.counts._asdict()
    found = {
        "table": report.table,
        "toml": report.toml,
        "summary": report.summary,
        "remarks": report.remarks,
        "capabilities": asdict(readings.capabilities),
        **{name: count or None for name, count in counts.items()},
        "ports": [
            {**one.port._asdict(), "name": printable(one.name), "label": printable(one.label), "duplex": one.duplex}
            for one in readings.ports
        ],
        "circuits": [_circuit(one, readings.losses.get(one.circuit)) for one in readings.circuits],
        "powers": [{**port._asdict(), "dbm": dbm} for port, dbm in sorted(readings.powers.items())],
    }
    return json.dumps(found, indent=2)


def _circuit(reading: CircuitReading, loss: float | None) -> dict[str, object]:
    return {
        **reading.circuit._asdict(),
        "state": reading.state.value,
        "cause": printable(reading.cause),
        "locked": reading.locked,
        "owner": printable(reading.owner),
        "loss_db": loss,
    }


def text_report(report: SwitchReport, width: int) -> str:
    """Return a report as text; tables have at most `width` columns."""
    blocks = ["\n".join(_summary(report))]
    if report.readings.circuits:
        blocks.append(_circuit_table(report, width))
    if report.readings.ports or report.readings.powers:
        blocks.append(_port_table(report, width))
    blocks.append(report.toml)
    return "\n\n".join(blocks)


def _summary(report: SwitchReport) -> Iterator[str]:
    counts, found = report.counts, report.readings.capabilities
    yield f"{place_of(report.table)}: driver {report.table['driver']}, {report.summary}"
    yield f"  ports        {counts.inputs or 'unknown'} inputs, {counts.outputs or 'unknown'} outputs"
    yield f"  circuits     {len(report.readings.circuits)}"
    yield f"  changes      {'; '.join(_changes(found))}"
    yield f"  light        {_LIGHT[found.light]}"
    yield f"  losses       {'measured' if found.measures_loss else 'not measured'}"
    yield f"  attenuators  {'yes' if found.attenuates else 'no'}"
    for remark in report.remarks:
        yield f"  note         {remark}"


def _changes(found: Capabilities) -> Iterator[str]:
    yield "deletes and adds in one transaction" if found.one_transaction else "deletes first, then adds"
    if found.batch_size is not None:
        yield f"at most {found.batch_size} circuits at a time"
    yield "all or nothing" if found.atomic else "a refused change may be done in part"
    yield "in effect when accepted" if found.confirms else "in effect when the list of circuits shows it"


def _circuit_table(report: SwitchReport, width: int) -> str:
    readings = report.readings
    rows = [
        [
            str(one.circuit.input),
            str(one.circuit.output),
            one.state.value,
            _decibels(readings.powers.get(Port("in", one.circuit.input))),
            _decibels(readings.powers.get(Port("out", one.circuit.output))),
            _decibels(readings.losses.get(Circuit(*one.circuit))),
            one.owner,
            ", ".join(filter(None, ["locked" if one.locked else "", one.cause])),
        ]
        for one in readings.circuits
    ]
    return text_table(_CIRCUIT_HEADER, rows, width)


def _port_table(report: SwitchReport, width: int) -> str:
    readings = report.readings
    named = {one.port: one for one in readings.ports}

    def cells(port: Port) -> list[str]:
        found = named.get(port)
        name, label = ("", "") if found is None else (found.name, found.label)
        return [name, _decibels(readings.powers.get(port)), label]

    numbers = sorted({port.number for port in (*named, *readings.powers)})
    rows = [[str(number), *cells(Port("in", number)), *cells(Port("out", number))] for number in numbers]
    return text_table(_PORT_HEADER, rows, width)


def _decibels(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
