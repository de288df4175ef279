"""The model of Polatis switches: port numbers, circuits, and the ports that an error names.

Modules `optical-switch` and `polatis-switch`. Ports of the device are numbered through: inputs 1..N, outputs from N+1.
A circuit is an entry of `cross-connects/pair`, whose key is the input; several entries go in one edit. The model does
not require that an output is used once: the device checks that.

An edit creates a pair, so that the device refuses an input which another client uses. Only a pair that the same edit
removes is replaced, which moves the circuit at once. Since a pair is removed by its input alone, whatever its output
is, `other_outputs` compares the pairs beforehand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from optical_switch.errors import ProtocolError, RefusedError
from optical_switch.model import Circuit, CircuitReading, CircuitState, Port
from optical_switch.netconf.markup import child, children, element, text, value
from optical_switch.netconf.messages import RpcError
from optical_switch.printable import printable
from optical_switch.session import BatchResult

OPTICAL_SWITCH = "http://www.polatis.com/yang/optical-switch"
POLATIS_SWITCH = "http://www.polatis.com/yang/polatis-switch"
FIRST_REVISION = "2017-08-04"
"""Revision of `optical-switch` that introduced `port-config`, `opm-power` and `voa`; those before lack them."""
MAX_PORT = 65535
"""Largest port number of the model (`portFormat`)."""

_REVISION = re.compile(r"[?&]revision=([0-9]{4}-[0-9]{2}-[0-9]{2})(?:&|$)")
_PORT = re.compile(r"[0-9]{1,5}")
_PORT_IN_PATH = re.compile(r"\b(?:ingress|egress|port-id)\s*=\s*['\"]?([0-9]{1,5})\b")
_DARK_STATUS = {"FAILED": CircuitState.FAILED, "DISABLED": CircuitState.ABSENT}
"""State of a circuit whose port has this status; with any other one light passes."""


def check_model(capabilities: Iterable[str]) -> None:
    """Check that a device announces the model in a usable revision.

    Parameters
    ----------
    capabilities : Iterable[str]
        Capabilities of the device's hello.

    Raises
    ------
    ProtocolError
        If it does not.
    """
    announced = next((uri for uri in capabilities if uri.partition("?")[0] == OPTICAL_SWITCH), None)
    if announced is None:
        raise ProtocolError(f"the switch does not announce the model {OPTICAL_SWITCH}: use the driver of its protocol")
    revision = _REVISION.search(announced)
    if revision is not None and revision[1] < FIRST_REVISION:
        raise ProtocolError(
            f"the switch has revision {revision[1]} of its model, and {FIRST_REVISION} is the first that has power "
            "readings: update its software"
        )


@dataclass(frozen=True, slots=True)
class PortNumbering:
    """The numbers that the device gives its ports.

    Parameters
    ----------
    first_output : int
        Number of output 1 at the device.
    """

    first_output: int

    def number(self, port: Port) -> int:
        """Return the device's number of a port."""
        return port.number if port.side == "in" else self.first_output - 1 + port.number

    def port(self, number: int) -> Port:
        """Return the port with this number at the device."""
        if number < self.first_output:
            return Port("in", number)
        return Port("out", number - self.first_output + 1)

    def read_port(self, parent: Element, leaf: str, namespace: str = OPTICAL_SWITCH) -> Port:
        """Return the port whose number is in the element `leaf`. Raises ProtocolError."""
        number = value(parent, leaf, namespace)
        if not _PORT.fullmatch(number) or not 1 <= int(number) <= MAX_PORT:
            raise ProtocolError(f"the switch reports {printable(repr(number))} as {leaf}, which is no port")
        return self.port(int(number))


# ------------------------------------------------------------------------------------------------------- circuits


def circuits_edit(deletes: Sequence[Circuit], adds: Sequence[Circuit], numbering: PortNumbering) -> str:
    """Return the edit that removes circuits and sets others; each input is in `adds` once at most.

    Parameters
    ----------
    deletes : Sequence[Circuit]
        Circuits to remove.
    adds : Sequence[Circuit]
        Circuits to set, in this order.
    numbering : PortNumbering
        Numbers of the ports.

    Returns
    -------
    str
        Content of an edit.
    """
    removed = {circuit.input for circuit in deletes}
    moved = removed.intersection(circuit.input for circuit in adds)
    pairs = [_pair(circuit, numbering, "remove") for circuit in deletes if circuit.input not in moved]
    pairs += [_pair(circuit, numbering, "replace" if circuit.input in moved else "create") for circuit in adds]
    return element("cross-connects", *pairs, namespace=OPTICAL_SWITCH)


def circuits_filter(inputs: Iterable[int] = ()) -> str:
    """Return the filter that reads the circuits at these inputs, or all circuits."""
    pairs = (element("pair", element("ingress", text(number))) for number in inputs)
    return element("cross-connects", *pairs, namespace=OPTICAL_SWITCH)


def read_circuits(data: Element, numbering: PortNumbering) -> list[Circuit]:
    """Return the circuits of a reading. Raises ProtocolError if one does not join an input and an output."""
    listed = child(data, "cross-connects", OPTICAL_SWITCH)
    pairs = [] if listed is None else children(listed, "pair", OPTICAL_SWITCH)
    return [_circuit(pair, numbering) for pair in pairs]


def other_outputs(circuits: Iterable[Circuit], present: Iterable[Circuit]) -> dict[Circuit, int]:
    """Return the circuits whose input is connected to another output, with that output."""
    output_of = dict(present)
    outputs = {circuit: output_of.get(circuit.input, circuit.output) for circuit in circuits}
    return {circuit: output for circuit, output in outputs.items() if output != circuit.output}


def status_filter() -> str:
    """Return the filter that reads the status of all ports."""
    port = element("port", element("port-id"), element("status"))
    return element("port-config", port, namespace=OPTICAL_SWITCH)


def read_status(data: Element, numbering: PortNumbering) -> dict[Port, str]:
    """Return the status of each port of a reading. Raises ProtocolError."""
    listed = child(data, "port-config", OPTICAL_SWITCH)
    ports = [] if listed is None else children(listed, "port", OPTICAL_SWITCH)
    return {numbering.read_port(one, "port-id"): value(one, "status", OPTICAL_SWITCH) for one in ports}


def circuit_reading(circuit: Circuit, status: Mapping[Port, str], numbering: PortNumbering) -> CircuitReading:
    """Return a circuit with its state, which follows from the status of its ports."""
    for port in (Port("in", circuit.input), Port("out", circuit.output)):
        if (state := _DARK_STATUS.get(status.get(port, ""))) is not None:
            return CircuitReading(circuit, state, f"port {numbering.number(port)} is {status[port]}")
    return CircuitReading(circuit, CircuitState.CONNECTED)


def _pair(circuit: Circuit, numbering: PortNumbering, operation: str) -> str:
    ends = element("ingress", text(circuit.input))
    if operation != "remove":
        ends += element("egress", text(numbering.number(Port("out", circuit.output))))
    return element("pair", ends, operation=operation)


def _circuit(pair: Element, numbering: PortNumbering) -> Circuit:
    source, target = numbering.read_port(pair, "ingress"), numbering.read_port(pair, "egress")
    if (source.side, target.side) != ("in", "out"):
        raise ProtocolError(
            f"the switch connects port {numbering.number(source)} to port {numbering.number(target)}, but its outputs "
            f"should begin at {numbering.first_output}: correct first_output, or remove that connection"
        )
    return Circuit(source.number, target.number)


# --------------------------------------------------------------------------------------------------------- errors


def refusal(error: RpcError, numbering: PortNumbering) -> RefusedError:
    """Return an error of the device as the neutral one, with the ports that it names."""
    numbers = _PORT_IN_PATH.findall(error.path)
    if _PORT.fullmatch(error.bad_element):
        numbers.append(error.bad_element)
    ports = {numbering.port(int(number)) for number in numbers if 1 <= int(number) <= MAX_PORT}
    return RefusedError(printable(error.tag), printable(error.message), ports)


def refused_batch(errors: Sequence[RpcError], circuits: Iterable[Circuit], numbering: PortNumbering) -> BatchResult:
    """Return the outcome of an edit that the device refused.

    Parameters
    ----------
    errors : Sequence[RpcError]
        Errors of the device, at least one.
    circuits : Iterable[Circuit]
        All circuits of the edit.
    numbering : PortNumbering
        Numbers of the ports.

    Returns
    -------
    BatchResult
        The circuits with a port that an error names are refused by that one, all others by the first.
    """
    refusals = [refusal(error, numbering) for error in errors]
    blamed = {port: one for one in reversed(refusals) for port in one.ports}
    refused = {
        circuit: blamed[port]
        for circuit in circuits
        for port in (Port("out", circuit.output), Port("in", circuit.input))
        if port in blamed
    }
    return BatchResult(refused, refusals[0])


def withheld_batch(moved: Mapping[Circuit, int]) -> BatchResult:
    """Return the outcome of an edit that was not sent, because inputs are connected to other outputs than these."""
    refused = {
        circuit: RefusedError("data-missing", f"input {circuit.input} is connected to output {output}")
        for circuit, output in moved.items()
    }
    return BatchResult(refused, next(iter(refused.values())))
