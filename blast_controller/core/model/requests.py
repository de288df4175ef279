"""Requests of applications: requests, parts, grants, and their events."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

from blast_controller.core.model.part_states import PartState

RequestKey = tuple[str, str]
"""(tenant, the key that the client chose)"""


@dataclass(frozen=True, slots=True)
class MulticastRequest:
    """A requested multicast; times in seconds from receipt, rates in bit/s, hosts by name.

    A higher `priority` precedes; a request that `may_split` may be served in several parts one after the other, and one
    that `may_pause` may be paused at the end of a lease and resume later at the same byte.
    """

    key: str
    tenant: str
    sender: str
    receivers: tuple[str, ...]
    bytes: int
    max_rate: float | None = None
    pending_timeout: float | None = None
    deadline: float | None = None
    priority: int = 0
    may_split: bool = False
    may_pause: bool = False

    @property
    def id(self) -> RequestKey:
        """Return the request's tenant and key."""
        return (self.tenant, self.key)


@dataclass(frozen=True, slots=True)
class Extension:
    """A change of a request; it is applied or rejected as a whole."""

    add_receivers: tuple[str, ...] = ()
    remove_receivers: tuple[str, ...] = ()
    add_seconds: float = 0.0
    add_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds that each step of a grant took; None where there was no such step."""

    compute: float | None
    openflow: float | None
    optical: float | None
    total: float


@dataclass(frozen=True, slots=True)
class LeafMargin:
    """The received power of one leaf: minimum, typical and maximum (dBm), and both margins (dB).

    `sensitivity` is the distance of the minimum power above the receiver's sensitivity, `overload` that of the maximum
    below its overload power; `binding` is the element that binds the smaller margin.
    """

    rack: str
    min_power: float
    received: float
    max_power: float
    sensitivity: float
    overload: float
    binding: str

    @property
    def smaller(self) -> float:
        """Return the margin that counts; the receiver works if it is not negative."""
        return min(self.sensitivity, self.overload)


@dataclass(frozen=True, slots=True)
class Grant:
    """Permission to transmit; `lease` and `estimated_service` in seconds from the grant on, `rate` in bit/s.

    `margins` are those of the leaves, the smallest first; none where the optical switch has no power budget.
    """

    part: int
    receivers: tuple[str, ...]
    group_address: str
    group_port: int
    rate: float
    estimated_service: float
    lease: float
    first_byte: int
    unserved: tuple[str, ...]
    reservation: int
    timings: Timings
    margins: tuple[LeafMargin, ...] = ()


@dataclass(frozen=True, slots=True)
class TransferReport:
    """A sender's report about a transfer; unknown values are None. `duration` is in seconds."""

    bytes_sent: int | None = None
    duration: float | None = None
    bytes_repaired: int | None = None
    failed_receivers: tuple[str, ...] = ()

    def about(self, receivers: tuple[str, ...]) -> TransferReport:
        """Return the same without receivers that are not among these."""
        failed = frozenset(self.failed_receivers)
        return replace(self, failed_receivers=tuple(receiver for receiver in receivers if receiver in failed))


class EventKind(Enum):
    """Events of a request that its client receives."""

    GRANTED = "granted"
    PAUSED = "paused"
    CHANGED = "changed"
    REVOKED = "revoked"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class RequestEvent:
    """An event; `sequence` counts from 1 within the request, dropped events included."""

    sequence: int
    kind: EventKind
    part: int
    grant: Grant | None = None
    reason: str | None = None
    state: PartState | None = None


@dataclass(slots=True)
class Part:
    """The receivers of a request that one light tree serves.

    `reached` is the number of bytes sent as last reported, and `reported` is true if the sender reported during the
    current lease; `chunk` is the seconds of data that the policy allows in a lease (None: all that remain). The policy
    knows the part by the number `slot`; it may be split into `slots` parts, which take the numbers from there on.
    """

    index: int
    receivers: tuple[str, ...]
    state: PartState = PartState.PENDING
    reservation: int | None = None
    failures: int = 0
    reason: str | None = None
    extra_lease: float = 0.0
    lease_end: float | None = None
    grant: Grant | None = None
    report: TransferReport | None = None
    reached: int = 0
    reported: bool = False
    chunk: float | None = None
    slot: int = 0
    slots: int = 1


@dataclass(slots=True)
class Request:
    """A request with its state. `content` is the client's original request, to recognize a repetition.

    `latest_event` counts all events, of which `events` are the latest; `arrival` numbers the requests of this process.
    """

    content: MulticastRequest
    current: MulticastRequest
    received_at: float
    parts: list[Part]
    events: list[RequestEvent] = field(default_factory=list)
    latest_event: int = 0
    attached: bool = False
    vanished_at: float | None = None
    ended_at: float | None = None
    arrival: int = 0

    @property
    def state(self) -> PartState:
        """Return active or pending if a part is; else the state of the part that ended last."""
        states = [part.state for part in self.parts]
        for state in (PartState.ACTIVE, PartState.CONFIGURING, PartState.PENDING):
            if state in states:
                return state
        return states[-1]
