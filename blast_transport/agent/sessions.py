"""What an agent wants of sessions, and which of them run."""

from __future__ import annotations

import hmac
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

from blast_transport.credentials.admission import Connection
from blast_transport.links.verdict import Verdict
from blast_transport.wire.joining import Join
from blast_transport.wire.messages import Hello

_MAX_VERDICTS = 256


class Session(Protocol):
    """One transfer at this receiver, by the invitation `hello`."""

    @property
    def hello(self) -> Hello:
        """What it was invited by."""

    def run(self) -> bool:
        """Receive to the end; whether the connection can carry another session. Failures are its own to report."""

    def join(self, connection: Connection, join: Join) -> None:
        """Take a neighbor's connection, which is the session's from then on. Any thread.

        Raises TransportError for a join that is not wanted, and leaves the connection to the caller.
        """

    def stop(self, reason: str) -> None:
        """End soon, and tell the sender why. Any thread."""

    def rejoin(self, connection: Connection) -> bool:
        """Its sender has come again, over this connection: go on with it to the end; what it returns is as of `run`.

        Any thread.
        """

    @property
    def verdict(self) -> Verdict:
        """What is left of it when it is over."""


SessionFactory = Callable[[Connection, Hello], Session]
"""Raises TransportError for what cannot be received here; the sender is told."""


class RunningSessions:
    """The sessions of an agent by number, at most so many. Thread-safe."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._changed = threading.Condition()
        self._sessions: dict[int, Session | None] = {}
        self._verdicts: OrderedDict[int, Verdict] = OrderedDict()
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
            session = self._sessions.pop(number)
            if session is not None and session.hello.owner:
                self._verdicts[number] = session.verdict
                if len(self._verdicts) > _MAX_VERDICTS:
                    self._verdicts.popitem(last=False)
            self._changed.notify_all()

    def begun(self, hello: Hello) -> Session | Verdict | None:
        """What runs, or ran, by an earlier invitation of the same sender to the same session."""
        # Without the lock a session that is just being removed would be neither here nor there, and begin anew.
        with self._changed:
            session = self._sessions.get(hello.session)
            earlier = self._verdicts.get(hello.session) if session is None else session
        if earlier is None or not hello.owner:
            return None
        owner = earlier.owner if isinstance(earlier, Verdict) else earlier.hello.owner
        return earlier if hmac.compare_digest(owner, hello.owner) else None

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
