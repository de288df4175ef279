"""The context of the interface's methods, and the path of their work to the core."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TypeVar

from blast_controller.core.model.errors import RejectedError
from blast_controller.core.model.events import ClientsVanished
from blast_controller.rpc.attachments import Attachments
from blast_controller.rpc.clients.gate import Gate
from blast_controller.rpc.condition import Condition
from blast_controller.rpc.connections.connection import Connection
from blast_controller.rpc.convert import ThriftFuture
from blast_controller.rpc.fabric_reading import FabricReading
from blast_controller.runtime.runtime import CoreContext, Runtime

T = TypeVar("T")

_ASKED_TOO_MUCH = frozenset({"too_many_waiting", "too_many_pending", "too_many_requests"})
"""Refusals after which a connection is left alone for a while, besides what the gate refuses."""

History = Callable[[int, int], Iterable[tuple[int, str, str]]]
"""From (after sequence, limit) to (sequence, kind, JSON) of what was written."""


@dataclass(frozen=True, slots=True)
class VersionInfo:
    """The server's data for `version`, in addition to its policy's features."""

    features: frozenset[str]
    openflow_framework: str


@dataclass(frozen=True, slots=True)
class Services:
    """The runtime that decides, the gate that knows clients, and what else there is to ask."""

    runtime: Runtime
    gate: Gate
    history: History
    condition: Condition
    about: VersionInfo
    attached: Attachments = field(default_factory=Attachments)
    fabric: FabricReading = field(default_factory=FabricReading)

    def do(self, connection: Connection, work: Callable[[CoreContext], T | Future[T]]) -> Future[T]:
        """Do `work` on the runtime's thread, on the account of a connection."""
        if connection.account is None:
            # Permanent: calls of a connection whose account changed could overtake each other.
            connection.account = self.gate.account(connection)
        answer: Future[T] = ThriftFuture()
        self.runtime.call_for(connection.account, answer, lambda context: _noting_too_much(connection, context, work))
        return answer

    def later(self) -> CoreContext:
        """Return a context for work whose answer is returned when it is done (on the runtime's thread only)."""
        return CoreContext(self.runtime)

    def vanished(self, connection: Connection) -> None:
        """Handle the end of a client's connection: its waits by `request` end after a grace period."""

        def work(context: CoreContext) -> None:
            # The client may have come back on another connection before this one was seen to be dead.
            left = self.attached.leave(connection.id)
            if left:
                context.take(ClientsVanished(left))

        # Behind all that it has called.
        self.runtime.call_for(connection.account, Future(), work)


def _noting_too_much(connection: Connection, context: CoreContext, work: Callable[[CoreContext], T]) -> T:
    try:
        return work(context)
    except RejectedError as refusal:
        if refusal.code in _ASKED_TOO_MUCH:
            connection.asked_too_much(context.now)
        raise
