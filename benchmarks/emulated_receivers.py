"""Many receivers of light that are one process: each answers its sender as a receiver does, and none stores anything.

One socket takes the light for all of them, so that it costs the sender's kernel as much as one receiver; nothing of it
may be lost. Whoever is asked to lead a rack does so by the real thing. `python emulated_receivers.py COUNT` tells their
ports in a line of JSON, and ends with its standard input.
"""

from __future__ import annotations

import os
import selectors
import socket
import sys
import threading
import time
from collections.abc import Sequence

from child import tell

from blast_transport.base.errors import RemoteError
from blast_transport.blocks.layout import Layout
from blast_transport.carriers.optical.interface import open_group_socket, receive_buffer
from blast_transport.carriers.optical.light_socket import LightSocket
from blast_transport.carriers.optical.parameters import optical_parameters
from blast_transport.links.control_connection import ControlConnection
from blast_transport.links.dialling import dial
from blast_transport.links.first_message import read_first
from blast_transport.links.leader import Leader
from blast_transport.store.block_assembly import Piece
from blast_transport.wire.codec import encode
from blast_transport.wire.messages import Credit, EndOfData, Fin, Hello, Leg, Message, OnLeg, Quit, Ready
from blast_transport.wire.relaying import Relay

LOOPBACK = "127.0.0.1"
_FIRST_SECONDS = 10.0
_REPORT_SECONDS = 0.2


class Receivers:
    """Those of one session at a time."""

    def __init__(self, count: int) -> None:
        self._selector = selectors.DefaultSelector()
        self._lock = threading.Lock()
        self._wake, self._woken = socket.socketpair()
        self._selector.register(self._woken, selectors.EVENT_READ, self._clear)
        self._new: list[tuple[ControlConnection, Hello]] = []
        self._connections: set[ControlConnection] = set()
        self._session = 0
        self._light: LightSocket | None = None
        self._layout = Layout(1, 1, 1)
        self._segments = self._credited = 0
        self._every, self._report_at = 1, 0.0
        doors = [socket.create_server((LOOPBACK, 0)) for _ in range(count)]
        for door in doors:
            threading.Thread(target=self._admit, args=(door,), daemon=True).start()
        self.ports: Sequence[int] = [door.getsockname()[1] for door in doors]

    def run(self) -> None:
        """For ever."""
        while True:
            for key, _ in self._selector.select(_REPORT_SECONDS):
                key.data()
            self._invite()
            handled = self._segments // self._layout.block_segments
            if handled >= self._credited + self._every or time.monotonic() >= self._report_at:
                self._credit(handled)

    def _admit(self, door: socket.socket) -> None:
        while True:
            sock, _ = door.accept()
            match read_first(sock, _FIRST_SECONDS, _FIRST_SECONDS):
                case Relay() as relay:
                    threading.Thread(target=Leader(sock, relay, dial).run, daemon=True).start()
                case Hello() as hello:
                    with self._lock:
                        self._new.append((ControlConnection(sock), hello))
                    self._wake.send(b"\0")
                case _:
                    sock.close()

    def _clear(self) -> None:
        self._woken.recv(1 << 12)

    def _invite(self) -> None:
        with self._lock:
            new, self._new = self._new, []
        for connection, hello in new:
            if hello.session != self._session:
                self._begin(hello)
            self._connections.add(connection)
            self._selector.register(connection.socket, selectors.EVENT_READ, lambda one=connection: self._hear(one))
            self._say(connection, Ready(hello.session, receive_buffer=receive_buffer()))

    def _begin(self, hello: Hello) -> None:
        """What is left of the session before is forgotten."""
        for connection in list(self._connections):
            self._forget(connection)
        if self._light is not None:
            self._selector.unregister(self._light.socket)
            self._light.close()
            self._light = None
        self._session, self._layout, self._segments, self._credited = hello.session, hello.layout, 0, 0

    def _hear(self, connection: ControlConnection) -> None:
        try:
            messages = connection.receive()
        except RemoteError:
            # A sender that has what it wanted hangs up.
            self._forget(connection)
            return
        for message in messages:
            match message:
                case Leg():
                    self._listen(message)
                    self._say(connection, OnLeg(message.session, message.number))
                case EndOfData():
                    self._finish(connection, message)
                case Quit():
                    self._forget(connection)

    def _listen(self, leg: Leg) -> None:
        if self._light is not None:
            return
        said = optical_parameters(leg)
        sock = open_group_socket(LOOPBACK, said.group, said.port)
        self._light = LightSocket(sock, (said.source, said.source_port), leg.session, self._layout)
        self._every = leg.credit
        self._selector.register(sock, selectors.EVENT_READ, self._read)

    def _read(self) -> None:
        assert self._light is not None
        self._light.read(self._take)

    def _take(self, pieces: list[Piece]) -> None:
        for first, count, _ in pieces:
            if first != self._segments:
                sys.stderr.write(f"segments {self._segments} to {first} of the light were lost\n")
                os._exit(1)
            self._segments = first + count

    def _credit(self, handled: int) -> None:
        self._credited, self._report_at = handled, time.monotonic() + _REPORT_SECONDS
        frame = encode(Credit(self._session, handled, handled, handled))
        for connection in self._connections:
            connection.send_frame(frame)
            connection.drain()

    def _finish(self, connection: ControlConnection, end: EndOfData) -> None:
        last = self._layout.blocks - 1
        while self._segments < last * self._layout.block_segments + self._layout.segments(last):
            self._read()
        self._say(connection, Fin(end.session, end.digest, first_datagram=time.monotonic(), engine="emulated"))

    def _forget(self, connection: ControlConnection) -> None:
        if connection in self._connections:
            self._connections.remove(connection)
            self._selector.unregister(connection.socket)
            connection.close()

    def _say(self, connection: ControlConnection, message: Message) -> None:
        connection.send(message)
        connection.drain()


def _main() -> None:
    receivers = Receivers(int(sys.argv[1]))
    threading.Thread(target=receivers.run, daemon=True).start()
    tell({"ports": receivers.ports})
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    _main()
