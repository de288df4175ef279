"""The agent's server: accepts connections, finds out who is there, and hands them to sessions.

Every connection has a thread of its own. It stands at the door until it has proved who it is, within a bounded time.
Then a Hello makes a session, which runs in that thread and has the connection until it ends; a Join brings the
connection to a session that runs; a Relay makes us the leader of a rack, as long as the connection lasts; a Measure
makes us an end of a measurement, to which a Probe brings its connection. What is refused is told to the other side
where there are words for it, counted, and logged.
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

from blast_transport.agent.claims import Claims
from blast_transport.agent.measurements import Busy, Measurements
from blast_transport.agent.reporting import LOGGER, Refusals, Reporter, Why
from blast_transport.agent.sessions import RunningSessions, SessionFactory
from blast_transport.agent.settings import Settings
from blast_transport.base.endpoint import Endpoint, listen_on
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
from blast_transport.credentials.admission import Admission, Connection
from blast_transport.credentials.roles import SENDER
from blast_transport.links.dialling import Dialer, dial
from blast_transport.links.door import Door
from blast_transport.links.first_message import read_first
from blast_transport.links.leader import Leader
from blast_transport.measuring.limits import MeasuringLimits
from blast_transport.wire.codec import encode
from blast_transport.wire.joining import Join
from blast_transport.wire.measuring import Measure, Probe
from blast_transport.wire.messages import Hello, Quit
from blast_transport.wire.relaying import Relay

log = logging.getLogger(LOGGER)

_BACKLOG = 128
_TICK_SECONDS = 1.0
_FIRST_SECONDS, _IDLE_SECONDS = 60.0, 3600.0
"""Without a word: after a client has proved who it is, and between two sessions of a sender."""
_FAREWELL_SECONDS = 1.0
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_SECONDS_WITHOUT_ROOM = 0.2


class ServerParts(NamedTuple):
    """What may change while a server runs: who comes in, what a Hello makes, other agents, claims, measurements."""

    admission: Admission
    factory: SessionFactory
    dialer: Dialer
    claims: Claims = Claims(())
    measuring: MeasuringLimits = MeasuringLimits()


class AgentServer:
    """Listens from the start on; reaches other agents by `dialer`. Raises CannotListenError.

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
        self.refusals = Refusals(reporter)
        limits = settings.limits
        self._door = Door(limits.connections, limits.unauthenticated, limits.unauthenticated_per_host)
        self._sessions = RunningSessions(settings.limits.sessions)
        self.reason = ""
        self._wake_reader, self._wake_writer = os.pipe()
        self._listening = _listen(settings.agent.listen)
        host, port, *_ = self._listening.getsockname()
        self.endpoint = Endpoint(host, port)

    @property
    def busy(self) -> bool:
        """Somebody is connected."""
        return bool(self._door.guests or self._door.strangers)

    @property
    def status(self) -> str:
        """How busy it is, in a line."""
        refused = self.refusals.totals.total()
        return f"{len(self._sessions)} sessions, {self._door.guests} connections, {refused} refused"

    def run(self, tick: Callable[[], None] = lambda: None) -> None:
        """Serve until `stop`; `tick` is called at least once a second by the loop that accepts."""
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
        """Meet new connections and sessions with these; those that there are go on as they began. Any thread."""
        self._parts = parts

    def stop(self, reason: str) -> None:
        """End `run`; senders are told the reason. Any thread, also a signal handler; the first reason counts."""
        if not self.reason:
            self.reason = reason
            with suppress(OSError):
                os.write(self._wake_writer, b"\0")

    # ------------------------------------------------------------------------------------------------ at the door

    def _accept(self) -> None:
        try:
            sock, address = self._listening.accept()
        except OSError as error:
            # What went wrong with one client is over with it; without files or memory a pause may help.
            if error.errno in _NO_ROOM:
                self.refusals.add(Why.RESOURCES, "somebody", f"no connection can be accepted: {sentence(error)}")
                time.sleep(_SECONDS_WITHOUT_ROOM)
            return
        host, peer = address[0], str(Endpoint(address[0], address[1]))
        if why := self._door.enter(host):
            self._turn_away(sock, peer, Why.CROWD, why)
            return
        try:
            start_thread(f"connection {peer}", self._serve, sock, host, peer)
        except NoThreadError as error:
            self._door.leave(host, guest=False)
            self._turn_away(sock, peer, Why.RESOURCES, str(error))

    def _turn_away(self, sock: socket.socket, peer: str, why: Why, reason: str) -> None:
        self.refusals.add(why, peer, reason)
        self._parts.admission.turn_away(sock, reason)

    def _serve(self, sock: socket.socket, host: str, peer: str) -> None:
        # Whatever goes wrong, the socket is closed and the place at the door is given back.
        connection, guest = Connection(sock, peer), False
        try:
            connection = self._parts.admission.admit(sock, peer)
            self._door.welcome(host)
            guest = True
            ended = self._attend(connection, None)
            while ended is not None:
                ended = self._attend(connection, ended)
        except AuthenticationError as error:
            self.refusals.add(Why.AUTHENTICATION, peer, str(error))
            connection.close()
        except Exception as error:
            # The top of the thread: other connections and sessions go on. A traceback for each would fill the disk.
            if self.refusals.add(Why.FAULT, peer, f"{type(error).__name__}: {error}"):
                log.critical("the connection of %s failed", peer, exc_info=True)
            connection.close()
        finally:
            self._door.leave(host, guest=guest)

    # ---------------------------------------------------------------------------------------------------- inside

    def _attend(self, connection: Connection, ended: int | None) -> int | None:
        """Do what the other side wants next, after the session `ended`.

        The session that has ended by now, if it may want something else on this connection.
        """
        try:
            idle = _FIRST_SECONDS if ended is None else _IDLE_SECONDS
            first = read_first(connection.sock, idle, self._message_seconds, ended)
        except RemoteProtocolError as error:
            self.refusals.add(Why.PROTOCOL, connection.peer, str(error))
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

    def _join(self, connection: Connection, join: Join) -> None:
        session = self._sessions.find(join.session)
        try:
            if session is None:
                raise RemoteProtocolError(f"session {join.session}, which is to be joined, does not run here")
            session.join(connection, join)
        except TransportError as error:
            self.refusals.add(Why.JOIN, connection.peer, str(error))
            connection.close()

    def _lead(self, connection: Connection, relay: Relay) -> None:
        if connection.role != SENDER:
            self.refusals.add(Why.ROLE, connection.peer, "you may hand on data here, but make nobody a leader")
        elif not self._places_of_leaders.acquire(blocking=False):
            self.refusals.add(Why.FULL, connection.peer, "this agent leads as many racks as it runs sessions")
        else:
            try:
                self._run_leader(connection, relay)
            finally:
                self._places_of_leaders.release()

    def _run_leader(self, connection: Connection, relay: Relay) -> None:
        try:
            leader = Leader(connection.sock, relay, self._parts.dialer)
        except OSError as error:
            self.refusals.add(Why.RESOURCES, connection.peer, f"no rack can be led: {sentence(error)}")
            return
        self._leaders.add(leader)
        try:
            leader.run()
        finally:
            self._leaders.discard(leader)

    def _measure(self, connection: Connection, measure: Measure) -> None:
        try:
            self._measurements.serve(connection, measure, self._parts.dialer, self._parts.measuring)
        except (NotAllowedError, Busy) as error:
            self.refusals.add(Why.MEASURE, connection.peer, str(error))
        except RemoteError as error:
            log.info("a measurement for %s was given up: %s", connection.peer, error)
        except OSError as error:
            self.refusals.add(Why.RESOURCES, connection.peer, f"nothing can be measured: {sentence(error)}")

    def _join_measurement(self, connection: Connection, probe: Probe) -> None:
        try:
            self._measurements.join(connection, probe)
        except NotAllowedError as error:
            self.refusals.add(Why.MEASURE, connection.peer, str(error))
            connection.close()

    def _session(self, connection: Connection, hello: Hello) -> bool:
        if connection.role != SENDER:
            return self._refuse(Why.ROLE, connection, hello, "you may hand on data here, but start no sessions")
        begun = self._sessions.begun(hello)
        if begun is not None:
            return begun.rejoin(connection)
        if not self._sessions.reserve(hello.session):
            taken = f"session {hello.session} runs here already; another sender may be using its number"
            full = self._sessions.full()
            return self._refuse(Why.FULL if full else Why.TAKEN, connection, hello, full or taken)
        try:
            session = self._parts.factory(connection, hello)
            self._sessions.add(hello.session, session)
            return session.run()
        except TransportError as error:
            why, reason = Why.TARGET, str(error)
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            why, reason = Why.RESOURCES, f"this agent has no room for a session: {sentence(error)}; try later"
        finally:
            self._sessions.remove(hello.session)
        # Whoever hears it may come again at once, by another way: its number must be free by then.
        return self._refuse(why, connection, hello, reason)

    def _refuse(self, why: Why, connection: Connection, hello: Hello, reason: str) -> bool:
        self.refusals.add(why, connection.peer, reason)
        with suppress(OSError):
            connection.sock.settimeout(_FAREWELL_SECONDS)
            connection.sock.sendall(encode(Quit(hello.session, reason)))
        return False


def _listen(endpoint: Endpoint) -> socket.socket:
    try:
        sock = listen_on(*endpoint, _BACKLOG)
    except OSError as error:
        raise CannotListenError(f"cannot listen on {endpoint}: {sentence(error)}; change agent.listen") from error
    sock.setblocking(False)
    return sock
