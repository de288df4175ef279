"""The device's tables, as its updates show them, and the notices that follow from a change. Pure.

A notification of the device changes rows. The tables compare each circuit that the rows concern before and after all of
its changes, so a row that is deleted and written again in one notification causes no notice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from optical_switch.errors import ProtocolError
from optical_switch.model import (
    LOSS_ACCURACY_DB,
    Alarm,
    Circuit,
    CircuitReading,
    CircuitState,
    LossReading,
    Port,
    PortDescription,
)
from optical_switch.printable import printable
from optical_switch.session import Notice
from optical_switch.sonic_ocs.model import (
    CROSS_CONNECT_TABLE,
    FACTORY_TABLE,
    LABEL,
    MAX_CROSS_CONNECTS,
    MAX_VALUE_CHARACTERS,
    PORT_CONFIG,
    PORT_TABLE,
    OcsPortStatus,
    accuracy,
    circuit_of,
    circuit_state,
    insertion_loss,
    port_name,
    port_of,
    port_status,
)

FAILED_PORT = OcsPortStatus.FAILED.value
"""The condition of the alarm about a port."""

Row = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RowUpdated:
    """Columns of a row, of those in `READ_COLUMNS`, that have new values; the others keep theirs."""

    table: str
    key: str
    columns: Row


@dataclass(frozen=True, slots=True)
class RowsDeleted:
    """Everything below a path: of a table, a row or a column. The empty path is all tables."""

    path: tuple[str, ...] = ()


TableChange = RowUpdated | RowsDeleted


def labels_in(changes: Iterable[TableChange]) -> dict[Port, str]:
    """Return the labels of ports in rows of `PORT_CONFIG`. Raises ProtocolError if a row is none of a port."""
    return {
        port_of(change.key): printable(change.columns[LABEL])
        for change in changes
        if isinstance(change, RowUpdated) and change.table == PORT_CONFIG and LABEL in change.columns
    }


def accuracies_in(changes: Iterable[TableChange]) -> dict[Circuit, float]:
    """Return the accuracy of the loss of circuits, in dB.

    Parameters
    ----------
    changes : Iterable[TableChange]
        Rows of `FACTORY_TABLE`, one for each circuit, frequency and temperature.

    Returns
    -------
    dict[Circuit, float]
        The largest error of each circuit: its present frequency and temperature are not known.

    Raises
    ------
    ProtocolError
        If a key or value is none of the model.
    """
    found: dict[Circuit, float] = {}
    for change in changes:
        if isinstance(change, RowUpdated) and change.table == FACTORY_TABLE:
            error = accuracy(change.columns)
            if error is not None:
                circuit = circuit_of(change.key.partition("|")[0])
                found[circuit] = max(error, found.get(circuit, 0.0))
    return found


class _ReportedCircuit(NamedTuple):
    """A circuit as it was reported last.

    `loss` is None until the circuit is connected for the first time: mirrors that are being set lose more than a
    connected circuit ever does. A connected circuit that loses too much is `tuning` again, and its loss counts.
    """

    reading: CircuitReading
    loss: float | None = None
    connected_once: bool = False


class DeviceTables:
    """The rows of `OCS_PORT_TABLE` and `OCS_CROSS_CONNECT_TABLE`."""

    def __init__(self) -> None:
        self._ports: dict[Port, dict[str, str]] = {}
        self._circuits: dict[Circuit, dict[str, str]] = {}
        self._circuits_at: dict[Port, set[Circuit]] = {}
        self._seen: dict[Circuit, _ReportedCircuit] = {}
        self._failed: set[Port] = set()
        self._accuracies: Mapping[Circuit, float] = {}

    def apply(self, changes: Iterable[TableChange]) -> list[Notice]:
        """Change rows.

        Parameters
        ----------
        changes : Iterable[TableChange]
            Changes of one notification, in order. Changes of other tables are ignored.

        Returns
        -------
        list[Notice]
            Alarms about ports, circuits whose state has changed, and losses that have changed.

        Raises
        ------
        ProtocolError
            If a name or value is none of the model, or there are too many rows.
        """
        ports, circuits = set[Port](), set[Circuit]()
        for change in changes:
            if isinstance(change, RowUpdated):
                self._update(change, ports, circuits)
            else:
                self._delete(change.path, ports, circuits)
        for port in ports:
            circuits |= self._circuits_at.get(port, set())
        alarms = [alarm for port in sorted(ports) for alarm in self._port_notices(port)]
        return [*alarms, *(notice for circuit in sorted(circuits) for notice in self._circuit_notices(circuit))]

    def alarms(self) -> list[Alarm]:
        """Return an alarm for each port that has failed."""
        return [_alarm(port) for port in sorted(self._failed)]

    def circuits(self) -> Sequence[CircuitReading]:
        """Return all circuits."""
        return [self._seen[circuit].reading for circuit in sorted(self._seen)]

    def losses(self) -> Sequence[LossReading]:
        """Return the loss of each circuit that the device measures and that has been connected."""
        return [self._loss(circuit, seen.loss) for circuit, seen in sorted(self._seen.items()) if seen.loss is not None]

    def set_accuracies(self, accuracies: Mapping[Circuit, float]) -> list[LossReading]:
        """Set the accuracy of losses in dB by circuit, and return the losses whose accuracy has changed."""
        before = set(self.losses())
        self._accuracies = accuracies
        return [reading for reading in self.losses() if reading not in before]

    def ports(self, labels: Mapping[Port, str]) -> Sequence[PortDescription]:
        """Return all ports, with these labels."""
        return [PortDescription(port, port_name(port), labels.get(port, "")) for port in sorted(self._ports)]

    # ------------------------------------------------------------------------------------------------------ rows

    def _update(self, change: RowUpdated, ports: set[Port], circuits: set[Circuit]) -> None:
        for column, value in change.columns.items():
            if len(value) > MAX_VALUE_CHARACTERS:
                raise ProtocolError(
                    f"the switch reports {column} {printable(value)!r} of {printable(change.key)}: too long"
                )
        if change.table == PORT_TABLE:
            port = port_of(change.key)
            self._ports.setdefault(port, {}).update(change.columns)
            ports.add(port)
        elif change.table == CROSS_CONNECT_TABLE:
            circuit = circuit_of(change.key)
            if circuit not in self._circuits:
                self._create(circuit)
            self._circuits[circuit].update(change.columns)
            circuits.add(circuit)

    def _create(self, circuit: Circuit) -> None:
        if len(self._circuits) >= MAX_CROSS_CONNECTS:
            raise ProtocolError(f"the switch lists more than {MAX_CROSS_CONNECTS} cross-connects")
        self._circuits[circuit] = {}
        for port in _ends(circuit):
            self._circuits_at.setdefault(port, set()).add(circuit)

    def _delete(self, path: tuple[str, ...], ports: set[Port], circuits: set[Circuit]) -> None:
        table, key, column = (*path, None, None, None)[:3]
        if table in {None, PORT_TABLE}:
            for port in list(self._ports) if key is None else [port_of(key)]:
                ports.add(port)
                if column is None:
                    self._ports.pop(port, None)
                else:
                    self._ports.get(port, {}).pop(column, None)
        if table in {None, CROSS_CONNECT_TABLE}:
            for circuit in list(self._circuits) if key is None else [circuit_of(key)]:
                circuits.add(circuit)
                if column is None:
                    self._remove(circuit)
                else:
                    self._circuits.get(circuit, {}).pop(column, None)

    def _remove(self, circuit: Circuit) -> None:
        if self._circuits.pop(circuit, None) is not None:
            for port in _ends(circuit):
                self._circuits_at[port].discard(circuit)

    # --------------------------------------------------------------------------------------------------- notices

    def _port_notices(self, port: Port) -> Iterable[Notice]:
        failed = port in self._ports and port_status(self._ports[port]) is OcsPortStatus.FAILED
        if failed and port not in self._failed:
            self._failed.add(port)
            yield _alarm(port)
        elif not failed and port in self._failed:
            self._failed.discard(port)
            yield _alarm(port, cleared=True)

    def _circuit_notices(self, circuit: Circuit) -> Iterable[Notice]:
        before, row = self._seen.pop(circuit, None), self._circuits.get(circuit)
        if row is None:
            if before is not None:
                yield CircuitReading(circuit, CircuitState.ABSENT)
            return
        reading = CircuitReading(circuit, *circuit_state(circuit, row, self._ports))
        connected_once = reading.state is CircuitState.CONNECTED or (before is not None and before.connected_once)
        measured = insertion_loss(row)
        loss = measured if connected_once else None
        self._seen[circuit] = _ReportedCircuit(reading, loss, connected_once)
        if before is None or reading != before.reading:
            yield reading
        if loss is not None and (before is None or loss != before.loss):
            yield self._loss(circuit, loss)

    def _loss(self, circuit: Circuit, loss: float) -> LossReading:
        return LossReading(circuit, loss, self._accuracies.get(circuit, LOSS_ACCURACY_DB))


def _alarm(port: Port, *, cleared: bool = False) -> Alarm:
    return Alarm(port, port_name(port), FAILED_PORT, cleared=cleared)


def _ends(circuit: Circuit) -> tuple[Port, Port]:
    return Port("in", circuit.input), Port("out", circuit.output)
