"""The receiving process of a host: accepts control connections, joins groups, stores files.

One thread, one selector. Any number of senders may be served at the same time; a control connection carries one
session after the other. Sessions of one group and port share a socket and are told apart by their number.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from blast_transport.connection import ControlConnection
from blast_transport.control import DIGEST_BYTES, EndOfData, Fin, Hello, Message, Progress, Repair, Tune
from blast_transport.errors import RemoteProtocolError, TransportError, WrongInputError, sentence
from blast_transport.interface import interface_mtu, open_group_socket
from blast_transport.receiver_core import ReceiverCore, ReceiverState, ReceiverTimings
from blast_transport.receiver_session import Channel, Client, Session
from blast_transport.report import Failed, Listening, Received, ReceiverEvent
from blast_transport.store_old import TargetFile

_BACKLOG = 128
_MOST_CLIENTS = 256
_LARGEST_DATAGRAM = 1 << 16

GroupOpener = Callable[[str, str, int], socket.socket]
"""(interface address, group, port) -> a non-blocking socket that has joined."""


@dataclass(frozen=True, slots=True)
class ReceiverSettings:
    """`listen` is (address, port) on the packet network, port 0 for any free one; files go to `directory`.

    `interface_address` is the address of the interface on the light path. With `fsync` a file is on disk before it
    is confirmed.
    """

    listen: tuple[str, int]
    directory: Path
    interface_address: str
    fsync: bool = False


class Receiver:
    """Receives files until `stop` is called.

    `emit` is called with every event, in the thread that runs `run`; `address` is where senders connect. A context
    manager. Raises WrongInputError if a setting cannot be used.
    """

    def __init__(
        self,
        settings: ReceiverSettings,
        emit: Callable[[ReceiverEvent], None],
        *,
        timings: ReceiverTimings | None = None,
        open_group: GroupOpener = open_group_socket,
    ) -> None:
        if not settings.directory.is_dir():
            raise WrongInputError(f"{settings.directory} is not a directory; create it first")
        interface_mtu(settings.interface_address)
        self._settings = settings
        self._emit = emit
        self._timings = timings
        self._open_group = open_group
        self._clients: set[Client] = set()
        self._channels: dict[tuple[str, int], Channel] = {}
        self._buffer = memoryview(bytearray(_LARGEST_DATAGRAM))
        self._stopping = False
        self._listener = _listen(settings.listen)
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._selector.register(self._wake_reader, selectors.EVENT_READ, None)
        host, port = self._listener.getsockname()
        self.address: tuple[str, int] = (host, port)

    def __enter__(self) -> Receiver:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self) -> None:
        """Serve until `stop`."""
        self._emit(Listening(*self.address))
        while not self._stopping:
            for key, events in self._selector.select(self._timeout()):
                self._dispatch(key.data, events)
            self._tick()

    def stop(self) -> None:
        """Make `run` return; from any thread or signal handler."""
        self._stopping = True
        self._wake_writer.send(b"\0")

    def close(self) -> None:
        """End all sessions, leave all groups, close all sockets."""
        for client in list(self._clients):
            self._disconnect(client, "the receiver was stopped")
        self._selector.close()
        for sock in (self._listener, self._wake_reader, self._wake_writer):
            sock.close()

    def _dispatch(self, data: object, events: int) -> None:
        if isinstance(data, Channel):
            # Without sessions it was closed by an earlier event of the same wake-up.
            if data.sessions:
                data.read(self._buffer)
            for session in list(data.sessions.values()):
                if session.due:
                    self._advance(session.client)
        elif isinstance(data, Client):
            self._serve(data, events)
        elif data is not None:
            self._accept()

    def _accept(self) -> None:
        try:
            sock, address = self._listener.accept()
        except (BlockingIOError, ConnectionError):
            return
        if len(self._clients) >= _MOST_CLIENTS:
            sock.close()
            return
        client = Client(ControlConnection(sock), f"{address[0]}:{address[1]}")
        self._clients.add(client)
        self._selector.register(sock, selectors.EVENT_READ, client)

    def _serve(self, client: Client, events: int) -> None:
        try:
            if events & selectors.EVENT_READ:
                now = time.monotonic()
                for message in client.connection.receive():
                    self._message(client, message, now)
        except TransportError as error:
            self._disconnect(client, sentence(error))
            return
        self._advance(client)

    def _message(self, client: Client, message: Message, now: float) -> None:
        session = client.session
        if isinstance(message, Hello):
            if session is not None:
                raise RemoteProtocolError("Hello while a session is running")
            self._begin(client, message, now)
        elif session is None or message.session != session.core.hello.session:
            return
        elif isinstance(message, Repair):
            session.repair(message, now)
        elif isinstance(message, Progress):
            session.core.progress(now)
        elif isinstance(message, Tune):
            self._follow(session, message, now)
        elif isinstance(message, EndOfData):
            if session.core.state is not ReceiverState.RECEIVING:
                raise RemoteProtocolError("EndOfData a second time")
            session.core.end_of_data(message, now)
        else:
            raise RemoteProtocolError(f"{type(message).__name__} is not for a receiver")
        if session is not None:
            self._advance(client)

    def _begin(self, client: Client, hello: Hello, now: float) -> None:
        try:
            target = TargetFile(self._settings.directory, hello)
            session = Session(ReceiverCore(hello, now, self._timings), target, client, now)
            try:
                if hello.group:
                    self._join(session, (hello.group, hello.port))
            except (OSError, TransportError):
                target.discard()
                raise
        except (OSError, TransportError) as error:
            reason = f"cannot take part: {sentence(error)}"
            client.connection.send(Fin(hello.session, bytes(DIGEST_BYTES), reason, None, 0, 0))
            self._emit(Failed(hello.session, client.address, hello.name, reason))
            return
        client.session = session
        client.connection.expedite(by_light=bool(hello.group))

    def _follow(self, session: Session, tune: Tune, now: float) -> None:
        """Listen to another group from now on."""
        channel, key = session.channel, (tune.group, tune.port)
        if channel is None or session.core.state is not ReceiverState.RECEIVING:
            raise RemoteProtocolError("Tune in a session that receives no data by light")
        if key != channel.key:
            try:
                self._join(session, key)
            except (OSError, TransportError) as error:
                session.core.fail(f"cannot follow to {tune.group}: {sentence(error)}")
                return
            self._leave(session, channel)
        session.core.tuned(now)

    def _join(self, session: Session, key: tuple[str, int]) -> None:
        channel = self._channels.get(key)
        if channel is None:
            channel = Channel(self._open_group(self._settings.interface_address, *key), key)
            self._channels[key] = channel
            self._selector.register(channel.socket, selectors.EVENT_READ, channel)
        number = session.core.hello.session
        if number in channel.sessions:
            raise RemoteProtocolError(f"session {number} is in use on {key[0]}:{key[1]}")
        channel.sessions[number] = session
        session.channel = channel

    def _leave(self, session: Session, channel: Channel | None) -> None:
        if channel is None:
            return
        del channel.sessions[session.core.hello.session]
        if not channel.sessions:
            self._selector.unregister(channel.socket)
            channel.socket.close()
            del self._channels[channel.key]

    def _advance(self, client: Client) -> None:
        """After anything happened: finish the session if it can be, send what is to be sent."""
        session = client.session
        if session is not None:
            if session.core.state is ReceiverState.VERIFYING:
                session.commit(fsync=self._settings.fsync)
            for message in session.core.outbox:
                client.connection.send(message)
            session.core.outbox.clear()
            if session.core.over:
                self._end(session)
        self._flush(client)

    def _flush(self, client: Client) -> None:
        connection = client.connection
        if not connection.wants_write:
            return
        try:
            connection.flush()
        except TransportError as error:
            self._disconnect(client, sentence(error))
            return
        interest = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.wants_write else 0)
        if self._selector.get_key(connection.socket).events != interest:
            self._selector.modify(connection.socket, interest, client)

    def _end(self, session: Session) -> None:
        core, client = session.core, session.client
        client.session = None
        session.target.discard()
        self._leave(session, session.channel)
        if core.state is ReceiverState.FAILED:
            self._emit(Failed(core.hello.session, client.address, core.hello.name, core.reason))
            return
        began = session.started if core.first_datagram is None else core.first_datagram
        self._emit(
            Received(
                session=core.hello.session,
                sender=client.address,
                file=session.target.path,
                bytes=core.hello.size,
                digest=core.digest.hex(),
                seconds=time.monotonic() - began,
                repaired_bytes=core.repaired_bytes,
                duplicates=core.duplicates,
                first_datagram=core.first_datagram,
            )
        )

    def _disconnect(self, client: Client, reason: str) -> None:
        if client not in self._clients:
            return
        self._clients.discard(client)
        self._selector.unregister(client.connection.socket)
        client.connection.close()
        if client.session is not None:
            client.session.core.fail(reason)
            self._end(client.session)

    def _sessions(self) -> list[Session]:
        return [client.session for client in self._clients if client.session is not None]

    def _timeout(self) -> float | None:
        deadlines = [limit for session in self._sessions() if (limit := session.core.deadline()) is not None]
        return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None

    def _tick(self) -> None:
        now = time.monotonic()
        for session in self._sessions():
            session.core.tick(now)
            if session.due:
                self._advance(session.client)


def _listen(address: tuple[str, int]) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        sock.close()
        raise WrongInputError(f"cannot listen on {address[0]}:{address[1]}: {sentence(error)}") from error
    return sock
