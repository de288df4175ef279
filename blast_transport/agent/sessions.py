"""Interface of sessions to the agent, and the running sessions."""

from __future__ import annotations

import hmac
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

from blast_transport.credentials.admission import AgentConnection
from blast_transport.links.verdict import SessionVerdict
from blast_transport.wire.joining import Join
from blast_transport.wire.messages import Hello

_MAX_VERDICTS = 256
"""Results of ended sessions, kept for senders that reconnect."""


class Session(Protocol):
    """One transfer at this receiver, by the invitation `hello`."""

    @property
    def hello(self) -> Hello:
        """Return the Hello that created the session."""

    def run(self) -> bool:
        """Receive to the end; return whether the connection can carry another session.

        The session reports its failures.
        """

    def join(self, connection: AgentConnection, join: Join) -> None:
        """Take over a neighbor's connection. May be called from any thread.

        Raise TransportError for an unexpected join; the caller then keeps the connection.
        """

    def stop(self, reason: str) -> None:
        """End the session soon and report the reason to the sender. May be called from any thread."""

    def rejoin(self, connection: AgentConnection) -> bool:
        """Continue to the end over this connection, by which the sender has reconnected; return as `run` does.

        May be called from any thread.
        """

    @property
    def verdict(self) -> SessionVerdict:
        """Return the state that remains after the session."""


SessionFactory = Callable[[AgentConnection, Hello], Session]
"""Raises TransportError if the data cannot be received here; the sender gets the message."""


class RunningSessions:
    """The sessions of an agent by number, up to a limit. Thread-safe."""

    def __init__(self, max_sessions: int) -> None:
        self._max_sessions = max_sessions
        self._changed = threading.Condition()
        self._sessions: dict[int, Session | None] = {}
        self._verdicts: OrderedDict[int, SessionVerdict] = OrderedDict()
        self._ending = ""

    def __len__(self) -> int:
        return len(self._sessions)

    def full(self) -> str:
        """Return the reason why no further session is possible, empty if one is."""
        return (
            ""
            if len(self) < self._max_sessions
            else f"this agent runs {self._max_sessions} sessions, as many as it takes; try later"
        )

    def reserve(self, number: int) -> bool:
        """Take the place of a session, if its number is free and there is room; `remove` gives it back."""
        with self._changed:
            if number in self._sessions or len(self._sessions) >= self._max_sessions:
                return False
            self._sessions[number] = None
            return True

    def add(self, number: int, session: Session) -> None:
        """Add the session of a reserved number; stop it if all were stopped meanwhile."""
        with self._changed:
            self._sessions[number] = session
            ending = self._ending
        if ending:
            session.stop(ending)

    def remove(self, number: int) -> None:
        """Remove the ended session."""
        with self._changed:
            session = self._sessions.pop(number)
            if session is not None and session.hello.owner:
                self._verdicts[number] = session.verdict
                if len(self._verdicts) > _MAX_VERDICTS:
                    self._verdicts.popitem(last=False)
            self._changed.notify_all()

    def begun(self, hello: Hello) -> Session | SessionVerdict | None:
        """Return the session, or the verdict on it, that an earlier Hello of the same sender began.

        None if there was none, or if its sender was another one.
        """
        # Without the lock a session that is just being removed would be missing from both tables, and start again.
        with self._changed:
            session = self._sessions.get(hello.session)
            earlier = self._verdicts.get(hello.session) if session is None else session
        if earlier is None or not hello.owner:
            return None
        owner = earlier.owner if isinstance(earlier, SessionVerdict) else earlier.hello.owner
        return earlier if hmac.compare_digest(owner, hello.owner) else None

    def find(self, number: int) -> Session | None:
        """Return the running session with this number, if any."""
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
