"""Kinds of methods: what most do in the same way, made of the event that they become and what they answer."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Generic, TypeVar, TypeVarTuple

from blast_api import ttypes
from blast_controller.core.controller import Core
from blast_controller.core.model.errors import Rejected
from blast_controller.core.model.events import Event
from blast_controller.core.model.requests import RequestKey
from blast_controller.rpc import acting
from blast_controller.rpc.clients.identity import Identity
from blast_controller.rpc.connections.connection import Connection
from blast_controller.rpc.desk import Desk
from blast_controller.rpc.naming import named, status_of
from blast_controller.runtime.runtime import Turn
from blast_controller.runtime.waiting import Seat, Wait

T = TypeVar("T")
Found = TypeVar("Found")
Arguments = TypeVarTuple("Arguments")


def looks(answer: Callable[[Turn, Identity, *Arguments], T]) -> Callable[[Desk, Connection, *Arguments], Future[T]]:
    """A method that changes nothing: `answer` finds it in what is published or the core, for this client."""

    def do(desk: Desk, connection: Connection, *arguments: *Arguments) -> Future[T]:
        client = desk.gate.identity(connection)
        return desk.do(connection, lambda turn: turn.when_published(lambda: answer(turn, client, *arguments)))

    return do


def changes(
    event: Callable[[*Arguments], Callable[[RequestKey], Event]],
) -> Callable[[Desk, Connection, str | None, *Arguments], Future[ttypes.RequestStatus]]:
    """A method that changes the request of a key at once, and answers with its status.

    `event` takes the arguments behind the key, and gives what makes the event of the request's name.
    """

    def do(desk: Desk, connection: Connection, key: str | None, *arguments: *Arguments) -> Future[ttypes.RequestStatus]:
        asked = event(*arguments)
        client = desk.gate.identity(connection)

        def work(turn: Turn) -> Future[ttypes.RequestStatus]:
            name = named(turn.core.requests, client, key)
            turn.take(asked(name))
            return turn.when_decided(lambda: status_of(turn, name))

        return desk.do(connection, work)

    return do


def tells(event: Callable[[*Arguments], Event]) -> Callable[[Desk, Connection, *Arguments], Future[None]]:
    """A method that tells the core something, and answers nothing."""

    def do(desk: Desk, connection: Connection, *arguments: *Arguments) -> Future[None]:
        asked = event(*arguments)

        def work(turn: Turn) -> None:
            turn.handle(asked)
            acting.tell(turn, desk.gate, connection, asked)

        return desk.do(connection, work)

    return do


@dataclass(frozen=True, slots=True)
class Announcement(Generic[Found, T]):
    """What the core announces later: under which topic, what is answered then, and how long that may take."""

    topic: Callable[[Core], Hashable]
    answer: Callable[[Found], T]
    longest: float
    """Seconds."""
    too_late: Callable[[Core], Rejected]


def awaits(
    event: Callable[[*Arguments], Event], announced: Announcement[Found, T]
) -> Callable[[Desk, Connection, *Arguments], Future[T]]:
    """A method that has the core find something out, and answers when that is announced."""

    def do(desk: Desk, connection: Connection, *arguments: *Arguments) -> Future[T]:
        asked = event(*arguments)
        seat = Seat(desk.gate.account(connection), asks=True)

        def work(turn: Turn) -> Future[T]:
            turn.handle(asked)
            acting.tell(turn, desk.gate, connection, asked)
            wait = Wait(lambda found: True, announced.answer, lambda: announced.too_late(turn.core), seat)
            return turn.wait_announced(announced.topic(turn.core), announced.longest, wait)

        return desk.do(connection, work)

    return do
