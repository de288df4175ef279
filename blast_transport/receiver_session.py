"""A receiver's running pieces: the session with its file, the control connection, the group socket."""

from __future__ import annotations

import socket
import time

from blast_transport.connection import ControlConnection
from blast_transport.control import Repair
from blast_transport.datagram import HEADER
from blast_transport.errors import TransportError, sentence
from blast_transport.receiver_core import ReceiverCore, ReceiverState
from blast_transport.store_old import TargetFile

_DATAGRAMS_PER_WAKE = 64


class Session:
    """A core with the file it fills."""

    def __init__(self, core: ReceiverCore, target: TargetFile, client: Client, now: float) -> None:
        self.core = core
        self.target = target
        self.client = client
        self.started = now
        self.channel: Channel | None = None

    def datagram(self, segment: int, payload: memoryview, now: float) -> None:
        """A segment came by light."""
        if self.core.datagram(segment, len(payload), now):
            self._store(segment, payload)

    def repair(self, repair: Repair, now: float) -> None:
        """A segment came over the control connection."""
        if self.core.repair(repair.segment, len(repair.data), now):
            self._store(repair.segment, repair.data)

    @property
    def due(self) -> bool:
        """There is something to send or to verify."""
        return bool(self.core.outbox) or self.core.state is ReceiverState.VERIFYING

    def _store(self, segment: int, payload: bytes | memoryview) -> None:
        try:
            self.target.write(segment, payload, self.core.contiguous)
        except (OSError, TransportError) as error:
            self.core.fail(f"cannot store the file: {sentence(error)}")
            return
        self.core.check_complete()

    def commit(self, *, fsync: bool) -> None:
        """Check the whole and put the file in place."""
        try:
            self.target.commit(self.core.digest, fsync=fsync)
        except (OSError, TransportError) as error:
            self.core.fail(f"cannot complete the file: {sentence(error)}")
            return
        self.core.stored()


class Client:
    """One control connection and its session, if one is running."""

    def __init__(self, connection: ControlConnection, address: str) -> None:
        self.connection = connection
        self.address = address
        self.session: Session | None = None


class Channel:
    """One group socket with the sessions that listen to it."""

    def __init__(self, sock: socket.socket, key: tuple[str, int]) -> None:
        self.socket = sock
        self.key = key
        self.sessions: dict[int, Session] = {}
        self.ignored = 0

    def read(self, buffer: memoryview) -> None:
        """Hand the datagrams that have arrived to their sessions; whatever is not ours is counted and dropped."""
        now = time.monotonic()
        receive, unpack, sessions = self.socket.recv_into, HEADER.unpack_from, self.sessions
        for _ in range(_DATAGRAMS_PER_WAKE):
            try:
                count = receive(buffer)
            except BlockingIOError:
                return
            if count < HEADER.size:
                self.ignored += 1
                continue
            number, flags, segment = unpack(buffer)
            session = sessions.get(number)
            if session is None or flags:
                self.ignored += 1
                continue
            session.datagram(segment, buffer[HEADER.size : count], now)
