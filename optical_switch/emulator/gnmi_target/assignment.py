"""Which circuits the rows of CONFIG_DB ask for: pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, field

from optical_switch.emulator.crossbar import ends
from optical_switch.emulator.gnmi_target.ports import PortLayout
from optical_switch.emulator.gnmi_target.tables import CROSS_CONNECTS, PORTS, Rows
from optical_switch.model import Circuit, Port

NORMAL = "normal"
POWERED_OFF = "powered_off"


@dataclass(frozen=True, slots=True)
class Assignment:
    """The circuits that the rows of CONFIG_DB ask for.

    Parameters
    ----------
    circuits : Mapping[Circuit, str]
        Circuits to set, with the ids of their rows.
    blocked : Mapping[Circuit, str]
        Circuits that are not set since an operator has taken one of their ports out of service, with their ids.
    invalid : frozenset[str]
        Ids of rows that cannot be set: a port is in another circuit, or the row violates the model.
    overrides : Mapping[Port, str]
        Ports that an operator has taken out of service, with their `config_status`.
    """

    circuits: Mapping[Circuit, str] = field(default_factory=dict)
    blocked: Mapping[Circuit, str] = field(default_factory=dict)
    invalid: frozenset[str] = frozenset()
    overrides: Mapping[Port, str] = field(default_factory=dict)


def assign(rows: Rows, layout: PortLayout, assigned: Collection[Circuit]) -> Assignment:
    """Return the circuits that CONFIG_DB requests of the hardware.

    Of two circuits with the same port, one that has been assigned before keeps the port. Of two new ones the lower one
    by input and output gets it, so that the outcome does not depend on the order of rows in Redis.

    Parameters
    ----------
    rows : Rows
        The rows of CONFIG_DB.
    layout : PortLayout
        The ports of the switch.
    assigned : Collection[Circuit]
        Circuits that the hardware has or has refused.

    Returns
    -------
    Assignment
        The circuits.
    """
    overrides = _overrides(rows, layout)
    requested: dict[Circuit, str] = {}
    invalid: set[str] = set()
    for row, fields in rows.items():
        if row.table == CROSS_CONNECTS.name:
            circuit = layout.circuit(row, fields)
            if circuit is None:
                invalid.add(row.key[0])
            else:
                requested[circuit] = row.key[0]
    circuits: dict[Circuit, str] = {}
    blocked: dict[Circuit, str] = {}
    taken: set[Port] = set()
    for circuit in sorted(requested, key=lambda circuit: (circuit not in assigned, circuit)):
        if not overrides.keys().isdisjoint(ends(circuit)):
            blocked[circuit] = requested[circuit]
        elif not taken.isdisjoint(ends(circuit)):
            invalid.add(requested[circuit])
        else:
            circuits[circuit] = requested[circuit]
            taken.update(ends(circuit))
    return Assignment(circuits, blocked, frozenset(invalid), overrides)


def changes(
    assignment: Assignment, present: Set[Circuit], refused: Collection[Circuit]
) -> tuple[list[Circuit], list[Circuit]]:
    """Return the circuits to remove, and those to set except the ones that the hardware has refused before."""
    removed = sorted(present - assignment.circuits.keys())
    added = sorted(circuit for circuit in assignment.circuits if circuit not in present and circuit not in refused)
    return removed, added


def _overrides(rows: Rows, layout: PortLayout) -> dict[Port, str]:
    found: dict[Port, str] = {}
    for row, fields in rows.items():
        port = layout.port(row.key[0]) if row.table == PORTS.name else None
        status = fields.get("config_status", NORMAL)
        if port is not None and status != NORMAL:
            found[port] = status
    return found
