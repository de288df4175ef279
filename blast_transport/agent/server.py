"""The agent's server: accepts connections, authenticates clients, and assigns connections to sessions.

Every connection has a thread of its own, and a bounded time for its authentication. A Hello then creates a session,
which runs in that thread and owns the connection until it ends; a Join assigns the connection to a running session; a
Relay makes this agent the leader of a rack for the lifetime of the connection; a Measure makes it an end of a
measurement, to which a Probe adds its connection. Refusals are sent to the client where the protocol permits it,
counted, and logged.
"""

from __future__ import annotations

import errno
import logging
import os
import selectors
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from blast_base.endpoint import Endpoint, listen_on
from blast_transport.agent.claims import Claims
from blast_transport.agent.measurements import BusyError, Measurements
from blast_transport.agent.reporting import LOGGER, RefusalCounters, RefusalReason, Reporter
from blast_transport.agent.sessions import RunningSessions, SessionFactory
from blast_transport.agent.settings import Settings
from blast_transport.base.errors import (
    AuthenticationError,
    CannotListenError,
    NotAllowedError,
    NoThreadError,
    RemoteError,
    RemoteProtocolError,
    TransportError,
    sentence,
)
from blast_transport.base.threads import start_thread
from blast_transport.credentials.admission import Admission, AgentConnection
from blast_transport.credentials.roles import SENDER
from blast_transport.links.connection_limits import ConnectionLimiter
from blast_transport.links.dialling import Dialer, dial
from blast_transport.links.first_message import read_first
from blast_transport.links.leader import Leader
from blast_transport.measuring.limits import MeasuringLimits
from blast_transport.wire.codec import encode
from blast_transport.wire.joining import Join
from blast_transport.wire.measuring import Measure, Probe
from blast_transport.wire.messages import Abort, Hello
from blast_transport.wire.relaying import Relay

log = logging.getLogger(LOGGER)

_BACKLOG = 128
_TICK_SECONDS = 1.0
_FIRST_SECONDS, _IDLE_SECONDS = 60.0, 3600.0
"""Without a word: after a client has proved who it is, and between two sessions of a sender."""
_REFUSAL_SECONDS = 1.0
"""For sending a refusal to a client that may not read it."""
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_SECONDS_WITHOUT_ROOM = 0.2
"""Pause while the process has no descriptor left; a shorter one would only use CPU time."""


class ServerParts(NamedTuple):
    """Parts that a reload may replace: authentication, sessions, connections to other agents, claims, measurements."""

    admission: Admission
    factory: SessionFactory
    dialer: Dialer
    claims: Claims = Claims(())
    measuring: MeasuringLimits = MeasuringLimits()


class AgentServer:
    """Server that listens from the start; `dialer` connects to other agents. Raises CannotListenError.

    Attributes to read: `endpoint` (where it listens), `refusals`, `reason` (why it was stopped; empty: it was not).
    """

    def __init__(
        self,
        settings: Settings,
        admission: Admission,
        factory: SessionFactory,
        reporter: Reporter,
        dialer: Dialer = dial,
    ) -> None:
        self._parts = ServerParts(admission, factory, dialer)
        self._leaders: set[Leader] = set()
        self._measurements = Measurements()
        # Each dials as many hosts as its Relay names.
        self._places_of_leaders = threading.Semaphore(settings.limits.sessions)
        self._message_seconds = settings.access.handshake_timeout_ms / 1000
        self._stop_seconds = settings.agent.stop_timeout_ms / 1000
        self.refusals = RefusalCounters(reporter)
        limits = settings.limits
        self._admission = ConnectionLimiter(limits.connections, limits.unauthenticated, limits.unauthenticated_per_host)
        self._sessions = RunningSessions(settings.limits.sessions)
        self.reason = ""
        self._wake_reader, self._wake_writer = os.pipe()
        self._listening = _listen(settings.agent.listen)
        host, port, *_ = self._listening.getsockname()
        self.endpoint = Endpoint(host, port)

    @property
    def busy(self) -> bool:
        """Return whether any client is connected."""
        return bool(self._admission.guests or self._admission.unauthenticated)

    @property
    def status(self) -> str:
        """Return the load of the agent in one line."""
        refused = self.refusals.totals.total()
        return f"{len(self._sessions)} sessions, {self._admission.guests} connections, {refused} refused"

    def run(self, tick: Callable[[], None] = lambda: None) -> None:
        """Serve until `stop`; the accepting loop calls `tick` at least once a second."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._listening, selectors.EVENT_READ)
            selector.register(self._wake_reader, selectors.EVENT_READ)
            while not self.reason:
                if any(key.fileobj is self._listening for key, _ in selector.select(_TICK_SECONDS)):
                    self._accept()
                self._parts.claims.look(time.monotonic())
                tick()
        self._listening.close()
        for leader in list(self._leaders):
            leader.stop()
        self._measurements.stop()
        if not self._sessions.stop(self.reason, self._stop_seconds):
            log.warning("%s did not end in time", self.status)
        os.close(self._wake_reader)
        os.close(self._wake_writer)

    def renew(self, parts: ServerParts) -> None:
        """Use these parts for new connections and sessions; present ones keep theirs. May be called from any thread."""
        self._parts = parts

    def stop(self, reason: str) -> None:
        """End `run`; senders get the reason.

        May be called from any thread and in signal handlers; the first reason counts.
        """
        if not self.reason:
            self.reason = reason
            with suppress(OSError):
                os.write(self._wake_writer, b"\0")

    # ------------------------------------------------------------------------------------------------- admission

    def _accept(self) -> None:
        try:
            sock, address = self._listening.accept()
        except OSError as error:
            # An error of one client needs no action; without files or memory a pause may help.
            if error.errno in _NO_ROOM:
                self.refusals.add(
                    RefusalReason.RESOURCES, "unknown peer", f"cannot accept a connection: {sentence(error)}"
                )
                time.sleep(_SECONDS_WITHOUT_ROOM)
            return
        host, peer = address[0], str(Endpoint(address[0], address[1]))
        if kind := self._admission.enter(host):
            self._refuse_connection(sock, peer, RefusalReason.CROWD, kind)
            return
        try:
            start_thread(f"connection {peer}", self._serve, sock, host, peer)
        except NoThreadError as error:
            self._admission.leave(host, guest=False)
            self._refuse_connection(sock, peer, RefusalReason.RESOURCES, str(error))

    def _refuse_connection(self, sock: socket.socket, peer: str, kind: RefusalReason, reason: str) -> None:
        self.refusals.add(kind, peer, reason)
        self._parts.admission.refuse(sock, reason)

    def _serve(self, sock: socket.socket, host: str, peer: str) -> None:
        # Close the socket and release its slot after any failure.
        connection, guest = AgentConnection(sock, peer), False
        try:
            connection = self._parts.admission.admit(sock, peer)
            self._admission.welcome(host)
            guest = True
            ended = self._attend(connection, None)
            while ended is not None:
                ended = self._attend(connection, ended)
        except AuthenticationError as error:
            self.refusals.add(RefusalReason.AUTHENTICATION, peer, str(error))
            connection.close()
        except Exception as error:
            # Top of the thread: other connections and sessions continue. A traceback for each failure would fill the
            # disk.
            if self.refusals.add(RefusalReason.FAULT, peer, f"{type(error).__name__}: {error}"):
                log.critical("the connection of %s failed", peer, exc_info=True)
            connection.close()
        finally:
            self._admission.leave(host, guest=guest)

    # ---------------------------------------------------------------------------------------------------- inside

    def _attend(self, connection: AgentConnection, ended: int | None) -> int | None:
        """Do what the other side wants next, after the session `ended`.

        The session that has ended by now, if it may want something else on this connection.
        """
        try:
            idle = _FIRST_SECONDS if ended is None else _IDLE_SECONDS
            first = read_first(connection.sock, idle, self._message_seconds, ended)
        except RemoteProtocolError as error:
            self.refusals.add(RefusalReason.PROTOCOL, connection.peer, str(error))
            first = None
        match first:
            case Hello() if self._session(connection, first):
                return first.session
            case Join():
                self._join(connection, first)
                return None
            case Probe():
                self._join_measurement(connection, first)
                return None
            case Relay():
                self._lead(connection, first)
            case Measure():
                self._measure(connection, first)
        connection.close()
        return None

    def _join(self, connection: AgentConnection, join: Join) -> None:
        session = self._sessions.find(join.session)
        try:
            if session is None:
                raise RemoteProtocolError(f"session {join.session}, which is to be joined, does not run here")
            session.join(connection, join)
        except TransportError as error:
            self.refusals.add(RefusalReason.JOIN, connection.peer, str(error))
            connection.close()

    def _lead(self, connection: AgentConnection, relay: Relay) -> None:
        if connection.role != SENDER:
            self.refusals.add(
                RefusalReason.ROLE,
                connection.peer,
                "a client with the role neighbor may forward data here, not start a rack leader",
            )
        elif not self._places_of_leaders.acquire(blocking=False):
            self.refusals.add(
                RefusalReason.FULL,
                connection.peer,
                "this agent leads as many racks as limits.sessions allows; try again later",
            )
        else:
            try:
                self._run_leader(connection, relay)
            finally:
                self._places_of_leaders.release()

    def _run_leader(self, connection: AgentConnection, relay: Relay) -> None:
        try:
            leader = Leader(connection.sock, relay, self._parts.dialer)
        except OSError as error:
            self.refusals.add(RefusalReason.RESOURCES, connection.peer, f"no rack can be led: {sentence(error)}")
            return
        self._leaders.add(leader)
        try:
            leader.run()
        finally:
            self._leaders.discard(leader)

    def _measure(self, connection: AgentConnection, measure: Measure) -> None:
        try:
            self._measurements.serve(connection, measure, self._parts.dialer, self._parts.measuring)
        except (NotAllowedError, BusyError) as error:
            self.refusals.add(RefusalReason.MEASURE, connection.peer, str(error))
        except RemoteError as error:
            log.info("a measurement for %s was given up: %s", connection.peer, error)
        except OSError as error:
            self.refusals.add(RefusalReason.RESOURCES, connection.peer, f"nothing can be measured: {sentence(error)}")

    def _join_measurement(self, connection: AgentConnection, probe: Probe) -> None:
        try:
            self._measurements.join(connection, probe)
        except NotAllowedError as error:
            self.refusals.add(RefusalReason.MEASURE, connection.peer, str(error))
            connection.close()

    def _session(self, connection: AgentConnection, hello: Hello) -> bool:
        if connection.role != SENDER:
            return self._refuse(
                RefusalReason.ROLE, connection, hello, "a client with the role neighbor may not start sessions"
            )
        begun = self._sessions.begun(hello)
        if begun is not None:
            return begun.rejoin(connection)
        if not self._sessions.reserve(hello.session):
            taken = f"session {hello.session} runs here already; another sender may be using its number"
            full = self._sessions.full()
            return self._refuse(RefusalReason.FULL if full else RefusalReason.TAKEN, connection, hello, full or taken)
        try:
            session = self._parts.factory(connection, hello)
            self._sessions.add(hello.session, session)
            return session.run()
        except TransportError as error:
            kind, reason = RefusalReason.TARGET, str(error)
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            kind, reason = (
                RefusalReason.RESOURCES,
                f"this agent has no room for a session: {sentence(error)}; try later",
            )
        finally:
            self._sessions.remove(hello.session)
        # A refused sender may reconnect at once, by another path: its number must be free by then.
        return self._refuse(kind, connection, hello, reason)

    def _refuse(self, kind: RefusalReason, connection: AgentConnection, hello: Hello, reason: str) -> bool:
        self.refusals.add(kind, connection.peer, reason)
        with suppress(OSError):
            connection.sock.settimeout(_REFUSAL_SECONDS)
            connection.sock.sendall(encode(Abort(hello.session, reason)))
        return False


def _listen(endpoint: Endpoint) -> socket.socket:
    try:
        sock = listen_on(*endpoint, _BACKLOG)
    except OSError as error:
        raise CannotListenError(f"cannot listen on {endpoint}: {sentence(error)}; change agent.listen") from error
    sock.setblocking(False)
    return sock
