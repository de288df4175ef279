"""What the two sides report: events of a receiver, the result of a transfer."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Listening:
    """The receiver accepts control connections at this address."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Received:
    """A file is in place. `seconds` from its first datagram, or from the invitation if it saw none, to the end."""

    session: int
    sender: str
    file: Path
    bytes: int
    digest: str
    seconds: float
    repaired_bytes: int
    duplicates: int
    first_datagram: float | None


@dataclass(frozen=True, slots=True)
class Failed:
    """A session ended without a file."""

    session: int
    sender: str
    name: str
    reason: str


ReceiverEvent = Listening | Received | Failed


@dataclass(frozen=True, slots=True)
class ReceiverOutcome:
    """One receiver's end. `reason` is empty when the file is in place there.

    `first_datagram` is that receiver's own time.monotonic() at its first datagram, None if it saw none or did not say.
    """

    name: str
    complete: bool
    reason: str
    repaired_bytes: int
    first_datagram: float | None


@dataclass(frozen=True, slots=True)
class TransferResult:
    """One file sent.

    `seconds` runs from the first datagram out (unicast: the first data byte) to the last Fin. `datagrams` counts what
    went by light, `digest` is BLAKE2b-256 in hexadecimal, `repaired_bytes` the file data sent as repairs to all
    receivers together.
    """

    file: str
    session: int
    bytes: int
    digest: str
    seconds: float
    datagrams: int
    repaired_bytes: int
    receivers: tuple[ReceiverOutcome, ...]

    @property
    def complete(self) -> int:
        """Number of receivers that have the file."""
        return sum(outcome.complete for outcome in self.receivers)

    @property
    def payload_rate(self) -> float:
        """Bits of the file per second; 0 for a transfer that took no time."""
        return self.bytes * 8 / self.seconds if self.seconds else 0.0

    def to_json(self) -> dict[str, Any]:
        """For json.dumps."""
        return {**asdict(self), "payload_bits_per_second": round(self.payload_rate)}
