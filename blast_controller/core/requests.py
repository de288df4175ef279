"""What applications ask for and what they get: requests, parts, grants, and the events that tell them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from blast_controller.core.part_states import PartState

RequestKey = tuple[str, str]
"""(tenant, the key that the client chose)"""


@dataclass(frozen=True, slots=True)
class MulticastRequest:
    """A multicast that an application wants; times in seconds, rates in bit/s, hosts by name."""

    key: str
    tenant: str
    sender: str
    receivers: tuple[str, ...]
    bytes: int
    highest_rate: float | None = None
    patience: float | None = None

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
class Grant:
    """Permission to transmit; `lease` and `estimated_service` in seconds from the grant on, `rate` in bit/s."""

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


class EventKind(Enum):
    """What can happen to a request, as told to its client."""

    GRANTED = "granted"
    PAUSED = "paused"
    CHANGED = "changed"
    REVOKED = "revoked"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class RequestEvent:
    """One thing that happened; `sequence` counts from 1 within the request."""

    sequence: int
    kind: EventKind
    part: int
    grant: Grant | None = None
    reason: str | None = None
    state: PartState | None = None


@dataclass(slots=True)
class Part:
    """The receivers of a request that one light tree serves."""

    index: int
    receivers: tuple[str, ...]
    state: PartState = PartState.PENDING
    reservation: int | None = None
    failures: int = 0
    reason: str | None = None
    extra_lease: float = 0.0
    lease_end: float | None = None
    grant: Grant | None = None


@dataclass(slots=True)
class Request:
    """A request and all that became of it. `content` is what the client first asked, to recognise a repetition."""

    content: MulticastRequest
    current: MulticastRequest
    received_at: float
    parts: list[Part]
    events: list[RequestEvent] = field(default_factory=list)
    attached: bool = False
    vanished_at: float | None = None
    ended_at: float | None = None

    @property
    def state(self) -> PartState:
        """Active or pending while a part is; else how the last part ended."""
        states = [part.state for part in self.parts]
        for state in (PartState.ACTIVE, PartState.CONFIGURING, PartState.PENDING):
            if state in states:
                return state
        return states[-1]
