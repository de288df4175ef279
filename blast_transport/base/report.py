"""What the two sides report: events of a receiver, progress and result of a transfer."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Listening:
    """The receiver accepts control connections at this address."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Received:
    """What was sent is in place. `seconds` from its first datagram, or from the invitation if it saw none, to the end.

    `file` is where it is, `repaired_bytes` came as repairs, `resumed_blocks` were there from an earlier session,
    `refused` counts what came and was not right. `durable`: it is on disk, or not yet; None where nobody can know.
    `engine` is what proved and stored it (`base/engines.py`).
    """

    session: int
    sender: str
    file: str
    bytes: int
    digest: str
    seconds: float
    repaired_bytes: int
    duplicates: int
    first_datagram: float | None
    resumed_blocks: int = 0
    refused: int = 0
    durable: bool | None = None
    engine: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """A session ended without what was sent."""

    session: int
    sender: str
    name: str
    reason: str


ReceiverEvent = Listening | Received | Failed


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a transfer is, in bytes: `sent` by the transport, held by the `slowest` and the `median` receiver."""

    bytes: int
    sent: int
    slowest: int
    median: int
    repairs: int
    transport: str
    demoted: tuple[str, ...]
    complete: int
    failed: int

    def to_json(self) -> dict[str, object]:
        """For json.dumps."""
        return {"event": "progress", **asdict(self)}


@dataclass(frozen=True, slots=True)
class ReceiverOutcome:
    """One receiver's end. `reason` is empty when what was sent is in place there, verified.

    `demoted` says why it was served apart from the others, empty if it was not. `first_datagram` is that receiver's own
    time.monotonic() at its first datagram, None if it saw none or did not say. `durable`: what is complete there is on
    disk, or not yet and would be lost with its power; None where it cannot know (a command) or does not say.
    `resumed_bytes` were there before, from a session that did not come to its end. `engine` proved and stored it there
    (`base/engines.py`), empty if that is not known.
    """

    name: str
    complete: bool
    reason: str
    repaired_bytes: int
    first_datagram: float | None
    demoted: str = ""
    refused: int = 0
    durable: bool | None = None
    resumed_bytes: int = 0
    engine: str = ""


@dataclass(frozen=True, slots=True)
class TransferResult:
    """One file or stream sent.

    `seconds` runs from the first byte out to the last Fin. `datagrams` counts what went by light, with super-packets if
    `offload`; `digest` is that of the whole, in hexadecimal, and `suite` how it is computed. `repaired_bytes` is what
    was sent as repairs to all receivers together, `shared_repairs` counts segments repaired by light for several.
    `engine` is what read and digested at the sender. `hole_bytes` lie in holes of a sparse file, and were not sent.
    """

    file: str
    session: int
    bytes: int
    digest: str
    seconds: float
    datagrams: int
    repaired_bytes: int
    receivers: tuple[ReceiverOutcome, ...]
    suite: str = ""
    transports: tuple[str, ...] = ()
    offload: bool | None = None
    shared_repairs: int = 0
    engine: str = ""
    hole_bytes: int = 0

    @property
    def complete(self) -> int:
        """Number of receivers that have what was sent."""
        return sum(outcome.complete for outcome in self.receivers)

    @property
    def resumed_bytes(self) -> int:
        """What every receiver that has it now had before, from an earlier session."""
        return min((outcome.resumed_bytes for outcome in self.receivers if outcome.complete), default=0)

    @property
    def payload_rate(self) -> float:
        """Bits per second that were brought to whoever had least; 0 if nobody has it, and for what took no time."""
        if not self.complete or not self.seconds:
            return 0.0
        # Either may count a last block that is short as a full one.
        return max(0, self.bytes - self.resumed_bytes - self.hole_bytes) * 8 / self.seconds

    def to_json(self) -> dict[str, object]:
        """For json.dumps."""
        return {**asdict(self), "payload_bits_per_second": round(self.payload_rate)}
