"""What is said to measure how fast data goes from some hosts to others. Meaning and bytes, no sockets.

A commander opens a connection to each end with Measure, which makes it a sink, or a source of these targets; it answers
Waiting, or Refused. A source opens a connection to a sink with Probe, hears Waiting or Refused, and from then on sends
bytes without meaning or frames, until it closes its direction. In the end the sink tells the commander what it got
(Measured), the source what it sent (Sent). The token lets in the probes of this measurement alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from blast_transport.base.errors import RemoteProtocolError
from blast_transport.wire.codec import Form, FrameDecoder, frame
from blast_transport.wire.fields import from_json, to_json

MEASURE_TYPE, PROBE_TYPE = 96, 97
FIRST_TYPES = frozenset({MEASURE_TYPE, PROBE_TYPE})
"""Those that begin a connection."""

TOKEN_BYTES = 16
MIN_BYTES = 1 << 16
MAX_BYTES = 1 << 40
MAX_SECONDS = 60.0
MAX_STREAMS = 256
"""Connections of one end in one measurement."""

MAX_RATE = 1e15
"""Bits/s."""

_MAX_REASON = 1000
_MEASURE_BYTES = 1 << 16
_REASON_BYTES = 1 << 14


@dataclass(frozen=True, slots=True)
class Measure:
    """Be an end of a measurement: without `targets` a sink of `streams` connections in all, else a source.

    A source opens `streams` connections to each target, (name, host, port), and sends on all of them at once, unpaced,
    until it has sent `max_bytes` or `max_seconds` are over. A sink takes no more than these bytes in all.
    """

    token: bytes
    max_bytes: int
    max_seconds: float
    streams: int = 1
    targets: tuple[tuple[str, str, int], ...] = ()

    def check(self) -> None:
        """Raises RemoteProtocolError if no commander may say this."""
        connections = self.streams * max(1, len(self.targets))
        if len(self.token) != TOKEN_BYTES:
            raise RemoteProtocolError(f"Measure needs a token of {TOKEN_BYTES} bytes")
        if not MIN_BYTES <= self.max_bytes <= MAX_BYTES or not 0 < self.max_seconds <= MAX_SECONDS:
            raise RemoteProtocolError("Measure asks for bytes or seconds out of range")
        if self.streams < 1 or connections > MAX_STREAMS:
            raise RemoteProtocolError(f"Measure asks for no connection, or for more than {MAX_STREAMS}")
        if any(not 0 < port < 1 << 16 for _, _, port in self.targets):
            raise RemoteProtocolError("Measure names a port out of range")


@dataclass(frozen=True, slots=True)
class Probe:
    """First message of a source to a sink: what follows belongs to the measurement of this token."""

    token: bytes


@dataclass(frozen=True, slots=True)
class Waiting:
    """Yes: begin."""


@dataclass(frozen=True, slots=True)
class Refused:
    """No, and why; `busy`: another measurement is at work here, so that it may be yes soon."""

    reason: str
    busy: bool = False

    def check(self) -> None:
        """Raises RemoteProtocolError for a reason that cannot be shown."""
        _check_reason(self.reason)


@dataclass(frozen=True, slots=True)
class Measured:
    """From a sink: how many bytes came, seconds from the first to the last of them, and their rate in bits/s.

    The rate leaves out how the connections came up to speed (`measuring.arrivals`).
    """

    received: int
    seconds: float
    rate: float

    def check(self) -> None:
        """Raises RemoteProtocolError for what nobody can have measured."""
        if not 0 <= self.received <= 2 * MAX_BYTES or self.seconds < 0 or not 0 <= self.rate <= MAX_RATE:
            raise RemoteProtocolError("Measured tells of bytes, seconds or a rate out of range")


@dataclass(frozen=True, slots=True)
class Sent:
    """From a source: how many bytes were sent, and the targets that could not be reached, (name, reason)."""

    sent: int
    failed: tuple[tuple[str, str], ...] = ()

    def check(self) -> None:
        """Raises RemoteProtocolError for bytes below nothing, or reasons that cannot be shown."""
        if self.sent < 0:
            raise RemoteProtocolError("Sent tells of less than no bytes")
        for _, reason in self.failed:
            _check_reason(reason)


MeasuringMessage = Measure | Probe | Waiting | Refused | Measured | Sent
Said = TypeVar("Said", bound=MeasuringMessage)


def _check_reason(reason: str) -> None:
    if not reason.isprintable() or len(reason) > _MAX_REASON:
        raise RemoteProtocolError(f"a reason is one printable line of at most {_MAX_REASON} characters")


def _decode(kind: type[Said]) -> Callable[[bytes], Said]:
    def decode(body: bytes) -> Said:
        message = from_json(kind, body)
        if isinstance(message, Measure | Refused | Measured | Sent):
            message.check()
        return message

    return decode


def _form(kind: type[Said], largest: int) -> Form[Said]:
    return Form(kind, to_json, _decode(kind), largest)


FORMS: dict[int, Form[MeasuringMessage]] = {
    MEASURE_TYPE: _form(Measure, _MEASURE_BYTES),
    PROBE_TYPE: _form(Probe, _REASON_BYTES),
    98: _form(Waiting, _REASON_BYTES),
    99: _form(Refused, _REASON_BYTES),
    100: _form(Measured, _REASON_BYTES),
    101: _form(Sent, _MEASURE_BYTES),
}
_TYPES: dict[type[MeasuringMessage], int] = {form.message: number for number, form in FORMS.items()}


def encode_measuring(message: MeasuringMessage) -> bytes:
    """The message as one frame. Raises LocalProtocolError if a field does not fit."""
    number = _TYPES[type(message)]
    return frame(number, FORMS[number], message)


class MeasuringDecoder(FrameDecoder[MeasuringMessage]):
    """What is said of a measurement, out of a byte stream."""

    def __init__(self) -> None:
        super().__init__(FORMS)
