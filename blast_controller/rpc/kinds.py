"""Kinds of methods: constructors for common forms, from the event of a call and its answer."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Generic, TypeVar, TypeVarTuple

from blast_api import ttypes
from blast_controller.core.controller import Core
from blast_controller.core.model.errors import RejectedError
from blast_controller.core.model.events import Event
from blast_controller.core.model.requests import RequestKey
from blast_controller.rpc import acting
from blast_controller.rpc.call_context import Services
from blast_controller.rpc.clients.identity import Identity
from blast_controller.rpc.connections.connection import Connection
from blast_controller.rpc.naming import named, status_of
from blast_controller.runtime.runtime import CoreContext
from blast_controller.runtime.waiting import Wait, WaitingCaller

T = TypeVar("T")
Found = TypeVar("Found")
Arguments = TypeVarTuple("Arguments")


def looks(
    answer: Callable[[CoreContext, Identity, *Arguments], T],
) -> Callable[[Services, Connection, *Arguments], Future[T]]:
    """Build a read-only method: `answer` reads the published state or the core, for this client."""

    def do(services: Services, connection: Connection, *arguments: *Arguments) -> Future[T]:
        client = services.gate.identity(connection)
        return services.do(
            connection, lambda context: context.when_published(lambda: answer(context, client, *arguments))
        )

    return do


def changes(
    event: Callable[[*Arguments], Callable[[RequestKey], Event]],
) -> Callable[[Services, Connection, str | None, *Arguments], Future[ttypes.RequestStatus]]:
    """Return a method that changes the request of a key at once, and answers with its status.

    `event` takes the arguments behind the key, and gives what makes the event of the request's name.
    """

    def do(
        services: Services, connection: Connection, key: str | None, *arguments: *Arguments
    ) -> Future[ttypes.RequestStatus]:
        asked = event(*arguments)
        client = services.gate.identity(connection)

        def work(context: CoreContext) -> Future[ttypes.RequestStatus]:
            name = named(context.core.requests, client, key)
            context.take(asked(name))
            return context.when_decided(lambda: status_of(context, name))

        return services.do(connection, work)

    return do


def sends_event(event: Callable[[*Arguments], Event]) -> Callable[[Services, Connection, *Arguments], Future[None]]:
    """Build a method that sends an event to the core and returns nothing."""

    def do(services: Services, connection: Connection, *arguments: *Arguments) -> Future[None]:
        asked = event(*arguments)

        def work(context: CoreContext) -> None:
            context.handle(asked)
            acting.record(context, services.gate, connection, asked)

        return services.do(connection, work)

    return do


@dataclass(frozen=True, slots=True)
class Announcement(Generic[Found, T]):
    """An announcement of the core: its topic, the answer, and the timeout."""

    topic: Callable[[Core], Hashable]
    answer: Callable[[Found], T]
    longest: float
    """Seconds."""
    too_late: Callable[[Core], RejectedError]


def awaits(
    event: Callable[[*Arguments], Event], announced: Announcement[Found, T]
) -> Callable[[Services, Connection, *Arguments], Future[T]]:
    """Return a method that has the core find something out, and answers when that is announced."""

    def do(services: Services, connection: Connection, *arguments: *Arguments) -> Future[T]:
        asked = event(*arguments)
        caller = WaitingCaller(services.gate.account(connection), for_grant=True)

        def work(context: CoreContext) -> Future[T]:
            context.handle(asked)
            acting.record(context, services.gate, connection, asked)
            wait = Wait(lambda found: True, announced.answer, lambda: announced.too_late(context.core), caller)
            return context.wait_announced(announced.topic(context.core), announced.longest, wait)

        return services.do(connection, work)

    return do
