"""Measurements in which an agent takes part, one at a time: two at once would measure each other."""

from __future__ import annotations

import hmac
import socket
import threading
from contextlib import suppress

from blast_transport.base.errors import NotAllowedError, RemoteError
from blast_transport.credentials.admission import Connection
from blast_transport.credentials.roles import SENDER
from blast_transport.links.dialling import Dialer
from blast_transport.measuring.limits import MeasuringLimits
from blast_transport.measuring.sink import Sink
from blast_transport.measuring.source import Source
from blast_transport.measuring.timings import ANSWER_SECONDS
from blast_transport.wire.measuring import (
    Measure,
    MeasuringMessage,
    Probe,
    Refused,
    Waiting,
    encode_measuring,
)


class Busy(RemoteError):
    """Another measurement is at work here."""


class Measurements:
    """Runs what commanders ask for. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: tuple[Measure, Sink | Source] | None = None
        self._ending = False

    def serve(self, connection: Connection, measure: Measure, dialer: Dialer, limits: MeasuringLimits) -> None:
        """Be an end of this measurement, and tell its commander how it went.

        Raises NotAllowedError, Busy, which the commander has been told, and RemoteError if it has gone.
        """
        try:
            _check(connection, measure, limits)
            end = self._begin(measure, dialer)
        except (NotAllowedError, Busy) as error:
            _say(connection.sock, Refused(str(error), isinstance(error, Busy)))
            raise
        try:
            _say(connection.sock, Waiting())
            result = end.run(connection.sock)
        finally:
            # Whoever hears the result may come again at once.
            self._running = None
        _say(connection.sock, result)

    def join(self, connection: Connection, probe: Probe) -> None:
        """Bring a probe to the sink that waits for it. Raises NotAllowedError, which the other side has been told."""
        with self._lock:
            match self._running:
                case (measure, Sink() as sink) if hmac.compare_digest(measure.token, probe.token):
                    sink.join(connection.sock)
                    return
        refused = Refused("the measurement that this probe belongs to is not at work here")
        _say(connection.sock, refused)
        raise NotAllowedError(refused.reason)

    def stop(self) -> None:
        """End what runs, and begin nothing more."""
        self._ending = True
        with self._lock:
            if self._running is not None:
                self._running[1].stop()

    def _begin(self, measure: Measure, dialer: Dialer) -> Sink | Source:
        with self._lock:
            if self._running is not None or self._ending:
                raise Busy("another measurement is at work on this host; try again")
            end = Source(measure, dialer) if measure.targets else Sink(measure)
            self._running = measure, end
        return end


def _check(connection: Connection, measure: Measure, limits: MeasuringLimits) -> None:
    if connection.role != SENDER:
        raise NotAllowedError("you may hand on data here, but have nothing measured")
    if not limits.bytes:
        raise NotAllowedError(
            "this agent takes part in no measurements: limits.max_measurement_bytes of its configuration is 0"
        )
    if measure.max_bytes > limits.bytes or measure.max_seconds > limits.seconds:
        raise NotAllowedError(
            f"this agent measures with at most {limits.bytes} bytes and {limits.seconds:g} s: ask for less"
        )


def _say(sock: socket.socket, message: MeasuringMessage) -> None:
    with suppress(OSError):
        sock.settimeout(ANSWER_SECONDS)
        sock.sendall(encode_measuring(message))
