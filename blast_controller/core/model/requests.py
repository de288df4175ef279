"""What applications ask for and what they get: requests, parts, grants, and the events that tell them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

from blast_controller.core.model.part_states import PartState

RequestKey = tuple[str, str]
"""(tenant, the key that the client chose)"""


@dataclass(frozen=True, slots=True)
class MulticastRequest:
    """A multicast that an application wants; times in seconds from receipt, rates in bit/s, hosts by name.

    A higher `priority` goes first; receivers of one that `may_split` may be served one part after the other, and one
    that `may_pause` may lose its light at the end of a lease and continue later where it stopped.
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
        """What names the request."""
        return (self.tenant, self.key)


@dataclass(frozen=True, slots=True)
class Extension:
    """What to change of a request; refused whole or done whole."""

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
    """The light of one leaf: least, typical and most power received (dBm), and both margins (dB).

    `sensitivity` is how far the least power is above what the receiver needs, `overload` how far the most is below what
    it stands; `binding` is the element that binds the smaller of them.
    """

    rack: str
    least: float
    received: float
    most: float
    sensitivity: float
    overload: float
    binding: str

    @property
    def smaller(self) -> float:
        """The margin that counts; the receiver works if it is not negative."""
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
    """How a transfer went, as its sender tells; None where it says nothing. `duration` is in seconds."""

    bytes_sent: int | None = None
    duration: float | None = None
    bytes_repaired: int | None = None
    failed_receivers: tuple[str, ...] = ()

    def about(self, receivers: tuple[str, ...]) -> TransferReport:
        """The same without receivers that are not among these."""
        failed = frozenset(self.failed_receivers)
        return replace(self, failed_receivers=tuple(receiver for receiver in receivers if receiver in failed))


class EventKind(Enum):
    """What can happen to a request, as told to its client."""

    GRANTED = "granted"
    PAUSED = "paused"
    CHANGED = "changed"
    REVOKED = "revoked"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class RequestEvent:
    """One thing that happened; `sequence` counts from 1 within the request, those that are dropped included."""

    sequence: int
    kind: EventKind
    part: int
    grant: Grant | None = None
    reason: str | None = None
    state: PartState | None = None


@dataclass(slots=True)
class Part:
    """The receivers of a request that one light tree serves.

    `reached` bytes have been sent as far as the sender has said, and `heard` is whether it has said anything since its
    lease began; `chunk` is how many seconds of data the policy gives it in a lease (None: all that remain). The policy
    knows it by the number `slot`, and it may still fall into `slots` parts, which take the numbers from there on.
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
    heard: bool = False
    chunk: float | None = None
    slot: int = 0
    slots: int = 1


@dataclass(slots=True)
class Request:
    """A request and all that became of it. `content` is what the client first asked, to recognize a repetition.

    `told` counts the events so far, of which `events` are the latest few; `arrival` numbers the requests that this
    process knows.
    """

    content: MulticastRequest
    current: MulticastRequest
    received_at: float
    parts: list[Part]
    events: list[RequestEvent] = field(default_factory=list)
    told: int = 0
    attached: bool = False
    vanished_at: float | None = None
    ended_at: float | None = None
    arrival: int = 0

    @property
    def state(self) -> PartState:
        """Active or pending while a part is; else how the last part ended."""
        states = [part.state for part in self.parts]
        for state in (PartState.ACTIVE, PartState.CONFIGURING, PartState.PENDING):
            if state in states:
                return state
        return states[-1]
