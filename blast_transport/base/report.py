"""Reports of both ends: events of a receiver, progress and result of a transfer."""

from __future__ import annotations

from blast_transport.base.frozen_record import FrozenRecord


class Listening(FrozenRecord):
    """The receiver accepts control connections at this address."""

    host: str
    port: int


class Received(FrozenRecord):
    """Completion of a session. `seconds`: from the first datagram, or from Hello without any, to the end.

    `file` is the path, `repaired_bytes` arrived as repairs, `resumed_blocks` were left by an earlier session, `refused`
    counts invalid data. `durable`: whether it is on disk; None: unknown. `engine` verified and stored it
    (`base/engines.py`).
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


class Failed(FrozenRecord):
    """A session ended without what was sent."""

    session: int
    sender: str
    name: str
    reason: str


ReceiverEvent = Listening | Received | Failed


class Progress(FrozenRecord):
    """Progress of a transfer in bytes: `sent` by the transport, held by the `slowest` and the `median` receiver."""

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
        """Return a value for json.dumps."""
        return {"event": "progress", **self.as_dict()}


class ReceiverOutcome(FrozenRecord):
    """Outcome of one receiver. `reason` is empty if the data is in place there, verified.

    `demoted` is the reason for repairing it after the others, empty if it was not demoted. `first_datagram` is that
    receiver's time.monotonic() at its first datagram, None if it received or reported none. `durable`: whether complete
    data is on disk there and survives a power loss; None: unknown (a command), or not reported. `resumed_bytes` were
    left by an earlier, incomplete session. `engine` verified and stored it there (`base/engines.py`), empty if unknown.
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


class TransferResult(FrozenRecord):
    """Result of sending one file or stream.

    `seconds` runs from the first byte sent to the last Fin. `datagrams` counts those of the optical transport, sent as
    super-packets if `offload`; `digest` is that of the whole, in hexadecimal, and `suite` its algorithm.
    `repaired_bytes` sums the repairs to all receivers, `shared_repairs` counts segments retransmitted for several
    receivers. `engine` read and digested at the sender. `hole_bytes` lie in holes of a sparse file, and were not sent.
    `notes` are sentences about the network: why a transport was left, and the remedy.
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
    notes: tuple[str, ...] = ()

    @property
    def complete(self) -> int:
        """Return the number of receivers that have the data."""
        return sum(outcome.complete for outcome in self.receivers)

    @property
    def resumed_bytes(self) -> int:
        """Return the bytes that every complete receiver held before, from an earlier session."""
        return min((outcome.resumed_bytes for outcome in self.receivers if outcome.complete), default=0)

    @property
    def payload_rate(self) -> float:
        """Return the bits/s of payload to the receiver that held least before.

        0 if no receiver is complete, or no time passed.
        """
        if not self.complete or not self.seconds:
            return 0.0
        # Either may count a last block that is short as a full one.
        return max(0, self.bytes - self.resumed_bytes - self.hole_bytes) * 8 / self.seconds

    def to_json(self) -> dict[str, object]:
        """Return a value for json.dumps."""
        outcomes = [outcome.as_dict() for outcome in self.receivers]
        return {**self.as_dict(), "receivers": outcomes, "payload_bits_per_second": round(self.payload_rate)}
