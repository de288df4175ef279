"""Connections of switches on one loop that moves bytes; framework and driver interpret them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from blast_base.endpoint import listen_on
from blast_controller.openflow.framework import (
    DEAD_DISPATCHER,
    HANDSHAKE_DISPATCHER,
    HEADER,
    MAIN_DISPATCHER,
    Datapath,
    Fatal,
    RyuApplication,
    RyuApplications,
    dispatch,
    ending_the_process,
)
from blast_controller.openflow.screening import is_readable
from blast_controller.serving.admission_slots import AdmissionSlots
from blast_controller.serving.listener import Acceptor, Listener
from blast_controller.serving.loop_thread import LoopThread
from blast_controller.serving.tls import ServerTlsSettings, certificate_names

LOG = logging.getLogger(__name__)
BACKLOG = 2048
READ_BYTES = 65_536
MAX_UNSENT = 16 * 2**20
"""Bytes that a switch may leave unread."""
MAX_UNKNOWN_BYTES = 4 * 2**20
"""Bytes that are listened to before a connection is that of one of our ToRs: a handshake with thousands of ports."""


@dataclass(frozen=True, slots=True)
class EchoProbe:
    """A switch that leaves `unanswered` echo requests unanswered, one every `interval` seconds, counts as dead.

    So does one that answers them and has not completed the handshake `handshake` seconds after it connected.
    """

    interval: float = 3.0
    unanswered: int = 5
    handshake: float = 10.0


class _NoSocket:
    """The socket that the framework configures and shuts down; the stream does both itself."""

    def setsockopt(self, *_: int) -> None:
        pass

    def settimeout(self, _: float | None) -> None:
        pass

    def shutdown(self, _: int) -> None:
        pass


class TorConnection(Datapath):  # type: ignore[misc]
    """The connection of one switch. Compare by identity: the same switch may be back before this one is dead."""

    def __init__(self, stream: asyncio.Transport, probe: EchoProbe) -> None:
        super().__init__(_NoSocket(), stream.get_extra_info("peername"))
        self.names = certificate_names(stream.get_extra_info("peercert"))
        """The names in the switch's certificate."""
        self._stream = stream
        self._probe = probe
        self._unread = bytearray()

    def begin(self, loop: asyncio.AbstractEventLoop, stalled: Callable[[TorConnection, str], None]) -> None:
        """Send hello and begin to probe the switch; call `stalled` if it is alive but does not read."""
        self.send_msg(self.ofproto_parser.OFPHello(self))
        self._ask(loop)
        loop.call_later(self._probe.handshake, self._check_handshake, stalled)

    def transmit(self, messages: bytes) -> bool:
        """Send whole OpenFlow messages; return false if the connection is closing."""
        if self._stream.is_closing():
            return False
        self._stream.write(messages)
        if self._stream.get_write_buffer_size() > MAX_UNSENT:
            LOG.warning("closed the connection from %s: the switch does not read its input", self.address)
            self.hang_up()
            return False
        return True

    def send(self, buf: bytes, close_socket: bool = False) -> bool:
        """Send a message of the framework itself."""
        sent = self.transmit(bytes(buf))
        if close_socket:
            self._stream.close()
        return sent

    def received(self, data: memoryview) -> None:
        """Append received bytes and process every complete message."""
        self._unread += data
        while len(self._unread) >= HEADER.size and self.state != DEAD_DISPATCHER:
            length = HEADER.unpack_from(self._unread)[2]
            if length < HEADER.size:
                raise ValueError(f"a message of {length} bytes")
            if len(self._unread) < length:
                return
            message = bytes(self._unread[:length])
            del self._unread[:length]
            if is_readable(message):
                dispatch(self, message)
            else:
                LOG.warning("ignored an undecodable message of type %d from %s", message[1], self.address)

    def hang_up(self) -> None:
        """Close the connection; reported as dead at once."""
        self.close()
        self._stream.abort()

    def _check_handshake(self, stalled: Callable[[TorConnection, str], None]) -> None:
        if self.state in (MAIN_DISPATCHER, DEAD_DISPATCHER):
            return
        missing = (
            "HELLO" if self.state == HANDSHAKE_DISPATCHER else "FEATURES_REPLY" if self.id is None else "PORT_DESC"
        )
        reason = f"it sent no {missing} within {self._probe.handshake:g} s after it connected"
        LOG.warning("closed the connection from %s: %s", self.address, reason)
        stalled(self, reason)
        self.hang_up()

    def _ask(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.state == DEAD_DISPATCHER:
            return
        if len(self.unreplied_echo_requests) > self._probe.unanswered:
            self.hang_up()
            return
        request = self.ofproto_parser.OFPEchoRequest(self)
        self.unreplied_echo_requests.append(self.set_xid(request))
        self.send_msg(request)
        loop.call_later(self._probe.interval, self._ask, loop)


class _TorStream(asyncio.BufferedProtocol):
    """Feeds a Connection; ends it when its switch talks nonsense."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._connection: TorConnection | None = None
        self._received_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        with ending_the_process(self._server.fatal):
            self._connection = TorConnection(transport, self._server.probe)
            self._server.welcome(self._connection)
            self._connection.begin(self._server.loop, self._server.stalled)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer that all connections read into; a new one for each read would be 256 KiB of memory."""
        return self._server.buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Process received bytes."""
        assert self._connection
        self._received_bytes += nbytes
        if self._received_bytes > MAX_UNKNOWN_BYTES and self._server.is_unidentified(self._connection):
            LOG.warning(
                "closed the connection from %s: it keeps sending and is not a configured ToR", self._connection.address
            )
            self._connection.hang_up()
            return
        try:
            self._connection.received(self._server.buffer[:nbytes])
        except Exception as error:  # noqa: BLE001 - what a framework raises for nonsense has no common class
            address = self._connection.address
            LOG.warning("closed the connection from %s: it does not speak OpenFlow 1.3 (%r)", address, error)
            self._connection.hang_up()

    def connection_lost(self, _: Exception | None) -> None:
        if self._connection is not None:
            self._server.part_with(self._connection)
            self._connection.close()


class Server:
    """Listens for switches and runs one application on them, on the loop `io`, by default one of its own.

    It listens from construction on (`port` is the real port for 0) and accepts from `start` on. One server runs in a
    process at a time, because the frameworks register applications globally. Raises OSError if the address cannot be
    listened on, TlsFileError if a certificate or key cannot be used. At most `max_unidentified` connections are
    open at once beside settled ones.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - with the loop that several share
        self,
        listen: tuple[str, int],
        fatal: Fatal,
        probe: EchoProbe | None = None,
        tls: ServerTlsSettings | None = None,
        max_unidentified: int = BACKLOG,
        io: LoopThread | None = None,
    ) -> None:
        self.fatal = fatal
        self.probe = probe or EchoProbe()
        self.stalled: Callable[[TorConnection, str], None] = lambda connection, reason: None
        """Called with a connection that is closed because it did not complete the handshake, and why."""
        self.connections: set[TorConnection] = set()
        self._unidentified: AdmissionSlots[TorConnection] = AdmissionSlots(max_unidentified, max_unidentified)
        self._listening = Listener(
            Acceptor(lambda: _TorStream(self), _handshake_failed, max_unidentified, max_unidentified), tls
        )
        self._listener = listen_on(*listen, BACKLOG)
        self.port: int = self._listener.getsockname()[1]
        self._io = io or LoopThread("openflow")
        self.loop = self._io.loop
        self.soon = self._io.post
        """Does work on the server's thread; nothing once it has stopped."""
        self.buffer = memoryview(bytearray(READ_BYTES))
        self._applications: RyuApplications | None = None
        self._accepts = False

    def start(self, application: type[RyuApplication], *arguments: object) -> None:
        """Make `application(*arguments, fatal)` and accept switches."""
        self._applications = RyuApplications(application, *arguments, self.fatal)
        self._accepts = True
        self._io.run(self._accept())

    def reload_certificate(self, tls: ServerTlsSettings) -> None:
        """Use this certificate for new connections; TLS cannot be turned on or off. Raises TlsFileError."""
        self._listening.reload(tls)

    def welcome(self, connection: TorConnection) -> None:
        """Give a new connection a place among the unidentified ones; the oldest of these may be closed."""
        self.connections.add(connection)
        closed = self._unidentified.enter(connection, str((connection.address or ("?",))[0]))
        if closed is not None:
            LOG.warning(
                "closed the connection from %s: it is not a configured ToR, and other connections need its place",
                closed.address,
            )
            closed.hang_up()

    def settle(self, connection: object) -> None:
        """Mark a connection as that of a configured ToR."""
        assert isinstance(connection, TorConnection)
        self._unidentified.leave(connection)

    def is_unidentified(self, connection: TorConnection) -> bool:
        """Return true if a connection is not, or not yet, that of a configured ToR."""
        return connection in self._unidentified

    def part_with(self, connection: TorConnection) -> None:
        """Handle the end of a connection."""
        self.connections.discard(connection)
        self._unidentified.leave(connection)

    def stop(self) -> None:
        """Close the listening socket and every connection, and end the application."""
        if self._accepts:
            self._accepts = False
            self._io.run(self._close())
        self._listener.close()
        self._io.end()
        if self._applications is not None:
            self._applications.close()

    async def _accept(self) -> None:
        self._listening.start(self._listener)

    async def _close(self) -> None:
        await self._listening.close()
        for connection in list(self.connections):
            connection.hang_up()
        # Closed streams report so in one of the loop's next turns.
        while self.connections:
            await asyncio.sleep(0)


def _handshake_failed(address: str, reason: str) -> None:
    LOG.warning("closed the connection from %s: TLS handshake failed: %s", address, reason)
