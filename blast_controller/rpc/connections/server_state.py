"""Limits, counters and places that all connections of a server share."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Hashable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Protocol

from blast_controller.rpc.connections.connection import Guard, Handler
from blast_controller.rpc.connections.errors import MalformedMessageError
from blast_controller.rpc.connections.frames import FRAME_BYTES
from blast_controller.rpc.connections.messages import ServiceCodec
from blast_controller.serving.admission_slots import AdmissionSlots
from blast_controller.serving.listener import HANDSHAKES, HANDSHAKES_PER_HOST
from blast_controller.serving.loop_thread import LoopThread

_READ_BYTES = 65_536
_SHORT_CALL = 16_384
"""Bytes: decoding more is work for a worker."""


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Limits of one client, and of all together. Numbers of objects, unless named otherwise."""

    frame_bytes: int = FRAME_BYTES
    connections: int = 4096
    """Of clients that have proved who they are, or need not; the others have places of their own."""
    connections_per_account: int = 3072
    unauthenticated: int = 512
    unauthenticated_per_host: int = 256
    unauthenticated_frame_bytes: int = 16_384
    parked_per_connection: int = 1024
    parked: int = 16384
    handshakes: int = HANDSHAKES
    handshakes_per_host: int = HANDSHAKES_PER_HOST
    workers: int = 4
    seconds_to_login: float = 20.0
    """For clients that the guard does not know."""
    waiting_bytes: int = 1 << 20
    """Of one client's calls that wait for their turn, beside the first."""


LEVELS = ("connections", "authenticated", "parked")
"""The counters that go up and down."""


@dataclass(slots=True)
class ServerCounters:
    """Counts since the start; written by the I/O thread only.

    `connections`, `authenticated` (of them) and `parked` go up and down. `unauthenticated` were closed before
    they authenticated, `evicted` of them in favor of new connections.
    """

    connections: int = 0
    authenticated: int = 0
    parked: int = 0
    accepted: int = 0
    calls: int = 0
    refused_connections: int = 0
    failed_handshakes: int = 0
    unauthenticated: int = 0
    evicted: int = 0
    refused_calls: int = 0
    refused_waits: int = 0
    failed_calls: int = 0
    malformed: int = 0
    oversized: int = 0


class ServedClient(Hashable, Protocol):
    """A connection, as others and the server see it."""

    @property
    def working(self) -> bool:
        """Return true while a call is in progress."""

    def make_room(self) -> None:
        """Close in favor of a new unauthenticated connection."""

    def take_no_more_calls(self) -> None:
        """Answer what is in progress, and nothing else."""

    def close(self) -> None:
        """End when what was answered has left."""

    def abort(self) -> None:
        """End at once."""


@dataclass(slots=True)
class Shared:
    """State that all connections of a server share."""

    codec: ServiceCodec
    handler: Handler
    guard: Guard
    limits: ServerLimits
    workers: Executor
    io: LoopThread
    at_once: frozenset[str] = frozenset()
    counters: ServerCounters = field(default_factory=ServerCounters)
    connections: set[ServedClient] = field(default_factory=set)
    held: Counter[Hashable] = field(default_factory=Counter)
    """Connections of clients that have proved who they are, by account."""
    unauthenticated: AdmissionSlots[ServedClient] = field(init=False)
    buffer: memoryview = field(init=False)
    """The buffer for received bytes, used by one connection at a time."""

    def __post_init__(self) -> None:
        """Create the places of unauthenticated connections."""
        self.unauthenticated = AdmissionSlots(self.limits.unauthenticated, self.limits.unauthenticated_per_host)
        self.buffer = memoryview(bytearray(_READ_BYTES))

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """Return the loop of the I/O thread."""
        return self.io.loop

    def refusal(self, account: Hashable) -> str | None:
        """Return why no more authenticated clients of this account may stay; None: they may."""
        if self.counters.authenticated >= self.limits.connections:
            return f"{self.counters.authenticated} clients are connected"
        if self.held[account] >= self.limits.connections_per_account:
            return f"{self.held[account]} clients of {account} are connected"
        return None

    def take(self, account: Hashable) -> None:
        """Count a client of this account."""
        self.counters.authenticated += 1
        self.held[account] += 1

    def give_back(self, account: Hashable) -> None:
        """Remove a client of this account."""
        self.counters.authenticated -= 1
        self.held[account] -= 1
        if not self.held[account]:
            del self.held[account]

    def answers_at_once(self, frame: bytes) -> bool:
        """Return true for a short call of a method that does not block."""
        if not self.at_once or len(frame) > _SHORT_CALL:
            return False
        try:
            return self.codec.read_header(frame).name in self.at_once
        except MalformedMessageError:
            return False
