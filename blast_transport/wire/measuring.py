"""Messages that measure the rate of data between hosts, and their encoding.

A commander connects to each end and sends Measure, which makes the end a sink or a source of the given targets; the end
answers Accepted or Refused. A source connects to a sink with Probe, receives Accepted or Refused, and then sends
unframed bytes until it closes its direction. At the end the sink reports MeasurementResult to the commander, the source
SourceResult. The token admits only the probes of this measurement.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from blast_transport.base.errors import RemoteProtocolError
from blast_transport.base.frozen_record import FrozenRecord
from blast_transport.wire.codec import FrameDecoder, MessageForm, frame
from blast_transport.wire.fields import from_json, to_json

MEASURE_TYPE, PROBE_TYPE = 96, 97
FIRST_TYPES = frozenset({MEASURE_TYPE, PROBE_TYPE})
"""Message types that may begin a connection."""

TOKEN_BYTES = 16
MIN_BYTES = 1 << 16
MAX_BYTES = 1 << 40
MAX_SECONDS = 60.0
MAX_STREAMS = 256
"""Maximum connections of one end in one measurement."""

MAX_RATE = 1e15
"""Bits/s."""

_MAX_REASON = 1000
"""Characters of a sentence from the other side."""
_MEASURE_BYTES = 1 << 16
_REASON_BYTES = 1 << 14
"""Memory that the other side can cause."""


class Measure(FrozenRecord):
    """Order to act as an end of a measurement.

    Without `targets` the agent is a sink of `streams` connections in total, else a source. A source opens `streams`
    connections to each target, (name, host, port), and sends on all of them at once, unpaced, until it has sent
    `max_bytes` or `max_seconds` are over. A sink accepts at most `max_bytes` in total.
    """

    token: bytes
    max_bytes: int
    max_seconds: float
    streams: int = 1
    targets: tuple[tuple[str, str, int], ...] = ()

    def check(self) -> None:
        """Raise RemoteProtocolError if a field is out of range."""
        connections = self.streams * max(1, len(self.targets))
        if len(self.token) != TOKEN_BYTES:
            raise RemoteProtocolError(f"Measure needs a token of {TOKEN_BYTES} bytes")
        if not MIN_BYTES <= self.max_bytes <= MAX_BYTES or not 0 < self.max_seconds <= MAX_SECONDS:
            raise RemoteProtocolError("Measure requests bytes or seconds out of range")
        if self.streams < 1 or connections > MAX_STREAMS:
            raise RemoteProtocolError(f"Measure requests no connection, or for more than {MAX_STREAMS}")
        if any(not 0 < port < 1 << 16 for _, _, port in self.targets):
            raise RemoteProtocolError("Measure names a port out of range")


class Probe(FrozenRecord):
    """First message of a source to a sink: the bytes that follow belong to the measurement with this token."""

    token: bytes


class Accepted(FrozenRecord):
    """Permission to begin."""


class Refused(FrozenRecord):
    """Refusal with its reason; `busy`: another measurement runs here, so a retry may succeed."""

    reason: str
    busy: bool = False

    def check(self) -> None:
        """Raise RemoteProtocolError if the reason cannot be displayed."""
        _check_reason(self.reason)


class MeasurementResult(FrozenRecord):
    """Result of a sink: bytes received, seconds from the first to the last of them, and their rate in bits/s.

    The rate excludes the ramp-up of the connections (`measuring.arrivals`).
    """

    received: int
    seconds: float
    rate: float

    def check(self) -> None:
        """Raise RemoteProtocolError if a value is out of range."""
        if not 0 <= self.received <= 2 * MAX_BYTES or self.seconds < 0 or not 0 <= self.rate <= MAX_RATE:
            raise RemoteProtocolError("MeasurementResult has bytes, seconds or a rate out of range")


class SourceResult(FrozenRecord):
    """Result of a source: bytes sent, and the targets that it could not reach, as (name, reason)."""

    sent: int
    failed: tuple[tuple[str, str], ...] = ()

    def check(self) -> None:
        """Raise RemoteProtocolError if the bytes are negative or a reason cannot be displayed."""
        if self.sent < 0:
            raise RemoteProtocolError("SourceResult has a negative number of bytes")
        for _, reason in self.failed:
            _check_reason(reason)


MeasuringMessage = Measure | Probe | Accepted | Refused | MeasurementResult | SourceResult
M = TypeVar("M", bound=MeasuringMessage)


def _check_reason(reason: str) -> None:
    if not reason.isprintable() or len(reason) > _MAX_REASON:
        raise RemoteProtocolError(f"a reason is one printable line of at most {_MAX_REASON} characters")


def _decode(kind: type[M]) -> Callable[[bytes], M]:
    def decode(body: bytes) -> M:
        message = from_json(kind, body)
        if isinstance(message, Measure | Refused | MeasurementResult | SourceResult):
            message.check()
        return message

    return decode


def _form(kind: type[M], largest: int) -> MessageForm[M]:
    return MessageForm(kind, to_json, _decode(kind), largest)


FORMS: dict[int, MessageForm[MeasuringMessage]] = {
    MEASURE_TYPE: _form(Measure, _MEASURE_BYTES),
    PROBE_TYPE: _form(Probe, _REASON_BYTES),
    98: _form(Accepted, _REASON_BYTES),
    99: _form(Refused, _REASON_BYTES),
    100: _form(MeasurementResult, _REASON_BYTES),
    101: _form(SourceResult, _MEASURE_BYTES),
}
_TYPES: dict[type[MeasuringMessage], int] = {form.message: number for number, form in FORMS.items()}


def encode_measuring(message: MeasuringMessage) -> bytes:
    """Encode the message as one frame. Raise LocalProtocolError if a field does not fit."""
    number = _TYPES[type(message)]
    return frame(number, FORMS[number], message)


class MeasuringDecoder(FrameDecoder[MeasuringMessage]):
    """Decoder of the messages of a measurement."""

    def __init__(self) -> None:
        super().__init__(FORMS)
