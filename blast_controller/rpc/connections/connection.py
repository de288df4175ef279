"""The handler's view of a client, and answers to deferred calls."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Protocol, TypeVar

T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE, PAUSE_FORGOTTEN_AFTER = 0.005, 0.25, 1.0
"""Seconds that a connection is left alone after it was refused for asking too much; each is twice the one before."""


class Connection:
    """One client's connection, as handlers see it: an identity that ends. Safe to use from any thread."""

    def __init__(self, number: int, peer: str, names: frozenset[tuple[str, str]] = frozenset()) -> None:
        self.id = number
        """Counts from 1; never used twice by one server."""
        self.peer = peer
        """Address of the client, "HOST:PORT"."""
        self.names = names
        """The names in the client's certificate; empty without one."""
        self.token: bytes | None = None
        """Digest of the token that the client logged in with."""
        self.account: Hashable = None
        """On which its calls are carried out, from the first of them on."""
        self.failed_logins = 0
        """In a row."""
        self.rest = 0.0
        """Seconds for which the client's next call is not started; see `take_rest`."""
        self.by_hand = False
        """True if the peer is a person and not an application."""
        self._pause, self._refused_at = 0.0, -math.inf
        self._lock = threading.Lock()
        self._closed = False
        self._callbacks: list[Callable[[], None]] = []

    def asked_too_much(self, now: float) -> None:
        """Record a call refused by the rate limit: a client that continues is read less and less often."""
        self._pause = min(2 * self._pause, LONGEST_PAUSE) if self._refused_lately(now) else FIRST_PAUSE
        self._refused_at = now

    def take_rest(self, now: float) -> float:
        """Return the seconds for which the next call is not started. For the server, after each call."""
        rest, self.rest = self.rest, 0.0
        # Refusals may come long after the calls: until there is none any more, every call is followed by a pause.
        return max(rest, self._pause) if self._refused_lately(now) else rest

    def _refused_lately(self, now: float) -> bool:
        return now - self._refused_at <= PAUSE_FORGOTTEN_AFTER

    @property
    def closed(self) -> bool:
        """Return true if the connection is closed."""
        return self._closed

    def on_close(self, callback: Callable[[], None]) -> None:
        """Call `callback` in a worker once the connection is gone; at once, in this thread, if it already is."""
        with self._lock:
            if not self._closed:
                self._callbacks.append(callback)
                return
        callback()

    def take_close_callbacks(self) -> list[Callable[[], None]]:
        """Mark the connection as closed and return its close callbacks, for the server."""
        with self._lock:
            self._closed = True
            callbacks, self._callbacks = self._callbacks, []
            return callbacks

    def __repr__(self) -> str:
        return f"<connection {self.id} from {self.peer}>"


def host_of(connection: Connection) -> str:
    """Return the address of a client, without its port."""
    return connection.peer.rpartition(":")[0]


class Guard(Protocol):
    """Decides whether a client's call reaches the handler. Used from any thread."""

    def check(self, connection: Connection, method: str) -> None:
        """Let the call pass, or raise an exception that the interface declares for it."""

    def holder(self, connection: Connection) -> Hashable | None:
        """Return the account of a client's connection, or None if it is not authenticated.

        An unauthenticated connection is closed if it stays so.
        """


class AdmitAll:
    """A guard that admits every call of every client."""

    def check(self, connection: Connection, method: str) -> None:
        """Let the call pass."""

    def holder(self, connection: Connection) -> Hashable | None:
        """Return the host as the account."""
        return host_of(connection)


class Handler(Protocol):
    """The handler of a server, in addition to one method for each method of the service.

    Those methods are called in worker threads as `method(connection, *arguments)`, the calls of one connection in the
    order of their arrival. An omitted argument is None. They return a value, raise an exception that the interface
    declares, or return a `concurrent.futures.Future` for either.

    Methods named in `at_once` never block: short calls of them run in the I/O thread, since waking a worker would take
    longer than the call.
    """

    at_once: frozenset[str]

    def disconnected(self, connection: Connection) -> None:
        """Handle the end of a connection; its last call has returned and its deferred replies are cancelled."""


def settle(future: Future[T], value: T) -> bool:
    """Answer a deferred call with `value`; return false if its caller is gone."""
    if not future.set_running_or_notify_cancel():
        return False
    future.set_result(value)
    return True


def settle_with_error(future: Future[T], error: Exception) -> bool:
    """Answer a deferred call with an exception; return false if its caller is gone."""
    if not future.set_running_or_notify_cancel():
        return False
    future.set_exception(error)
    return True
