"""What an agent wants of sessions, and which of them run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

from blast_transport.agent.connection import Connection
from blast_transport.pipeline.messages import Join
from blast_transport.wire.messages import Hello


class Session(Protocol):
    """One transfer at this receiver, by the invitation `hello`."""

    @property
    def hello(self) -> Hello:
        """What it was invited by."""

    def run(self) -> bool:
        """Receive to the end; whether the connection can carry another session. Failures are its own to report."""

    def join(self, connection: Connection, join: Join) -> None:
        """Take a neighbour's connection, which is the session's from then on. Any thread.

        Raises TransportError for a join that is not wanted, and leaves the connection to the caller.
        """

    def stop(self, reason: str) -> None:
        """End soon, and tell the sender why. Any thread."""

    def rejoin(self, connection: Connection) -> bool:
        """Its sender has come again, over this connection: go on with it to the end; what it returns is as of `run`.

        Any thread.
        """


SessionFactory = Callable[[Connection, Hello], Session]
"""Raises TransportError for what cannot be received here; the sender is told."""


class RunningSessions:
    """The sessions of an agent by number, at most so many. Thread-safe."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._changed = threading.Condition()
        self._sessions: dict[int, Session | None] = {}
        self._ending = ""

    def __len__(self) -> int:
        return len(self._sessions)

    def full(self) -> str:
        """Why there is no room for another one; empty where there is."""
        return (
            "" if len(self) < self._most else f"this agent runs {self._most} sessions, as many as it takes; try later"
        )

    def reserve(self, number: int) -> bool:
        """Take the place of a session, if its number is free and there is room; `remove` gives it back."""
        with self._changed:
            if number in self._sessions or len(self._sessions) >= self._most:
                return False
            self._sessions[number] = None
            return True

    def add(self, number: int, session: Session) -> None:
        """The session of a reserved place; it is stopped at once where all were stopped in the meantime."""
        with self._changed:
            self._sessions[number] = session
            ending = self._ending
        if ending:
            session.stop(ending)

    def remove(self, number: int) -> None:
        """The session is over."""
        with self._changed:
            del self._sessions[number]
            self._changed.notify_all()

    def find(self, number: int) -> Session | None:
        """The session with this number, if it runs."""
        return self._sessions.get(number)

    def stop(self, reason: str, seconds: float) -> bool:
        """Stop all of them and wait until they are over; False if that takes longer than `seconds`."""
        with self._changed:
            self._ending = reason
            running = [session for session in self._sessions.values() if session is not None]
        for session in running:
            session.stop(reason)
        give_up = time.monotonic() + seconds
        with self._changed:
            return self._changed.wait_for(lambda: not self._sessions, give_up - time.monotonic())
