"""The meaning of a refusal of the device: an error, and the circuits and ports that it concerns. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from optical_switch.errors import DeviceBusyError, OpticalSwitchError, ProtocolError, RefusedError, UnreachableError
from optical_switch.model import Circuit, Port
from optical_switch.printable import MAX_TEXT, printable
from optical_switch.session import BatchResult
from optical_switch.sonic_ocs.model import names_in

_UNKNOWN_OUTCOME = frozenset(["UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "DATA_LOSS"])
_BUSY = "RESOURCE_EXHAUSTED"
_NOT_GNMI = "UNIMPLEMENTED"


def grpc_error(code: str, details: str) -> OpticalSwitchError:
    """Return the error for the status of a call.

    Parameters
    ----------
    code : str
        Name of the status code of gRPC. A server in Go that returns an error without a code sends `UNKNOWN`, so that is
        a refusal, and so are all codes that do not concern the connection.
    details : str
        Text of the device.

    Returns
    -------
    OpticalSwitchError
        The error.
    """
    text = printable(details)
    if code in _UNKNOWN_OUTCOME:
        # gRPC nests the errors of a connection: the cause, such as an expired certificate, is at the end.
        cause = printable(details[-MAX_TEXT:])
        return UnreachableError(f"no answer from the switch ({code}): {'…' if len(details) > MAX_TEXT else ''}{cause}")
    if code == _BUSY:
        return DeviceBusyError(f"the switch is busy ({code}): {text}")
    if code == _NOT_GNMI:
        return ProtocolError(f"the switch does not support a call that the driver needs ({code}): {text}")
    return RefusedError(code, text)


def refused_batch(code: str, details: str, deletes: Sequence[Circuit], adds: Sequence[Circuit]) -> BatchResult:
    """Return the outcome of a refused transaction.

    Parameters
    ----------
    code : str
        Error code of the device.
    details : str
        Text of the device, which may name cross-connects or ports.
    deletes : Sequence[Circuit]
        Circuits that were to be removed.
    adds : Sequence[Circuit]
        Circuits that were to be set.

    Returns
    -------
    BatchResult
        The refusal. It concerns the circuits that the text names or, if it names none of them, the circuits to be set
        at ports that it names: a port is in use only by circuits that stay.
    """
    named = set(names_in(details))
    circuits = [circuit for circuit in (*deletes, *adds) if circuit in named]
    if not circuits:
        circuits = [c for c in adds if Port("in", c.input) in named or Port("out", c.output) in named]
    error = RefusedError(code, printable(details), (name for name in named if isinstance(name, Port)))
    return BatchResult(dict.fromkeys(circuits, error), error)
