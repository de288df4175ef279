"""Measurements in which an agent takes part, one at a time: two at once would measure each other."""

from __future__ import annotations

import hmac
import socket
import threading
from contextlib import suppress

from blast_transport.base.errors import NotAllowedError, RemoteError
from blast_transport.credentials.admission import AgentConnection
from blast_transport.credentials.roles import SENDER
from blast_transport.links.dialling import Dialer
from blast_transport.measuring.limits import MeasuringLimits
from blast_transport.measuring.sink import Sink
from blast_transport.measuring.source import MeasurementSource
from blast_transport.measuring.timings import ANSWER_SECONDS
from blast_transport.wire.measuring import (
    Accepted,
    Measure,
    MeasuringMessage,
    Probe,
    Refused,
    encode_measuring,
)


class BusyError(RemoteError):
    """Another measurement runs at this host, or its agent is ending."""


class Measurements:
    """Measurements at this host, one at a time. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: tuple[Measure, Sink | MeasurementSource] | None = None
        self._ending = False

    def serve(self, connection: AgentConnection, measure: Measure, dialer: Dialer, limits: MeasuringLimits) -> None:
        """Act as an end of this measurement and report the result to its commander.

        Raises NotAllowedError or BusyError, which is also sent to the commander, or RemoteError if the commander
        disconnects, or after `stop`.
        """
        try:
            _check(connection, measure, limits)
            end = self._begin(measure, dialer)
        except (NotAllowedError, BusyError) as error:
            _send(connection.sock, Refused(str(error), isinstance(error, BusyError)))
            raise
        try:
            _send(connection.sock, Accepted())
            result = end.run(connection.sock)
        finally:
            # The commander may connect again as soon as it has the result.
            self._running = None
        _send(connection.sock, result)

    def join(self, connection: AgentConnection, probe: Probe) -> None:
        """Assign a probe to the sink that waits for it. Raise NotAllowedError, which the other side has received."""
        with self._lock:
            match self._running:
                case (measure, Sink() as sink) if hmac.compare_digest(measure.token, probe.token):
                    sink.join(connection.sock)
                    return
        refused = Refused("the measurement that this probe belongs to does not run here")
        _send(connection.sock, refused)
        raise NotAllowedError(refused.reason)

    def stop(self) -> None:
        """End what runs, and begin nothing more."""
        self._ending = True
        with self._lock:
            if self._running is not None:
                self._running[1].stop()

    def _begin(self, measure: Measure, dialer: Dialer) -> Sink | MeasurementSource:
        with self._lock:
            if self._running is not None or self._ending:
                raise BusyError("another measurement is at work on this host; try again")
            end = MeasurementSource(measure, dialer) if measure.targets else Sink(measure)
            self._running = measure, end
        return end


def _check(connection: AgentConnection, measure: Measure, limits: MeasuringLimits) -> None:
    if connection.role != SENDER:
        raise NotAllowedError("a client with the role neighbor may not measure")
    if not limits.bytes:
        raise NotAllowedError(
            "this agent takes part in no measurements: limits.max_measurement_bytes of its configuration is 0"
        )
    if measure.max_bytes > limits.bytes or measure.max_seconds > limits.seconds:
        raise NotAllowedError(
            f"this agent measures with at most {limits.bytes} bytes and {limits.seconds:g} s: ask for less"
        )


def _send(sock: socket.socket, message: MeasuringMessage) -> None:
    with suppress(OSError):
        sock.settimeout(ANSWER_SECONDS)
        sock.sendall(encode_measuring(message))
