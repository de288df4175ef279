"""What the methods of the interface have at hand, and how their work gets to the core."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TypeVar

from blast_controller.core.model.errors import Rejected
from blast_controller.core.model.events import ClientsVanished
from blast_controller.rpc.attachments import Attachments
from blast_controller.rpc.clients.gate import Gate
from blast_controller.rpc.condition import Condition
from blast_controller.rpc.connections.connection import Connection
from blast_controller.rpc.convert import ThriftFuture
from blast_controller.rpc.fabric_reading import FabricReading
from blast_controller.runtime.runtime import Runtime, Turn

T = TypeVar("T")

_ASKED_TOO_MUCH = frozenset({"too_many_waiting", "too_many_pending", "too_many_requests"})
"""Refusals after which a connection is left alone for a while, besides what the gate refuses."""

History = Callable[[int, int], Iterable[tuple[int, str, str]]]
"""From (after sequence, limit) to (sequence, kind, JSON) of what was written."""


@dataclass(frozen=True, slots=True)
class About:
    """What `version` tells of the server, besides what its policy serves."""

    features: frozenset[str]
    openflow_framework: str


@dataclass(frozen=True, slots=True)
class Desk:
    """The runtime that decides, the gate that knows clients, and what else there is to ask."""

    runtime: Runtime
    gate: Gate
    history: History
    condition: Condition
    about: About
    attached: Attachments = field(default_factory=Attachments)
    fabric: FabricReading = field(default_factory=FabricReading)

    def do(self, connection: Connection, work: Callable[[Turn], T | Future[T]]) -> Future[T]:
        """Do `work` on the runtime's thread, on the account of a connection."""
        if connection.account is None:
            # For good: whose calls change their account on the way could overtake each other.
            connection.account = self.gate.account(connection)
        answer: Future[T] = ThriftFuture()
        self.runtime.call_for(connection.account, answer, lambda turn: _noting_too_much(connection, turn, work))
        return answer

    def later(self) -> Turn:
        """A turn for what is answered once the work is done (on the runtime's thread only)."""
        return Turn(self.runtime)

    def vanished(self, connection: Connection) -> None:
        """A client is gone: what it waited for with `request` is given up after a grace."""

        def work(turn: Turn) -> None:
            # The client may have come back on another connection before this one was seen to be dead.
            left = self.attached.leave(connection.id)
            if left:
                turn.take(ClientsVanished(left))

        # Behind all that it has called.
        self.runtime.call_for(connection.account, Future(), work)


def _noting_too_much(connection: Connection, turn: Turn, work: Callable[[Turn], T]) -> T:
    try:
        return work(turn)
    except Rejected as refusal:
        if refusal.code in _ASKED_TOO_MUCH:
            connection.asked_too_much(turn.now)
        raise
