"""What the threads of a node and of a source have in common: a poll loop that others can wake, and connecting."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from blast_transport.errors import RemoteError, TransportError, sentence
from blast_transport.pipeline.leg import Member, PipelineLeg
from blast_transport.pipeline.link import Link
from blast_transport.pipeline.messages import Join

Connector = Callable[[Member, float], socket.socket]
"""(whom, seconds at most) -> a connected socket, TLS or not. Raises OSError, TransportError."""

Ready = dict[int, int]
"""What poll found: descriptor to events."""

_WAKES = 4096
_IN, _OUT = select.POLLIN, select.POLLOUT


def connect_plain(member: Member, timeout: float) -> socket.socket:
    """A TCP connection without TLS. Raises OSError."""
    return socket.create_connection((member.host, member.port), timeout)


def join_message(leg: PipelineLeg) -> Join:
    """What we say first to whomever we connect to."""
    return Join(leg.session, leg.number, leg.token, leg.chain[leg.index].name)


class Waker:
    """Lets other threads end a wait and hand over what is to be done in the waiting thread."""

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._actions: deque[Callable[[], None]] = deque()
        self._closing = threading.Lock()
        self._closed = False

    def fileno(self) -> int:
        """Readable when there is something to do."""
        return self._reader.fileno()

    def wake(self) -> None:
        """End the wait, now or the next one; from any thread, also when all is over."""
        with suppress(OSError):
            self._writer.send(b"\0")

    def post(self, action: Callable[[], None]) -> None:
        """Have this done by the waiting thread, or, if it has ended, now; from any thread."""
        with self._closing:
            closed = self._closed
            if not closed:
                self._actions.append(action)
        if closed:
            action()
        else:
            self.wake()

    def run(self) -> None:
        """Do what was posted."""
        with suppress(BlockingIOError):
            self._reader.recv(_WAKES)
        while self._actions:
            self._actions.popleft()()

    def close(self) -> None:
        """Nobody waits any more; what was posted is done."""
        with self._closing:
            self._closed = True
        while self._actions:
            self._actions.popleft()()
        self._reader.close()
        self._writer.close()


class Dialler:
    """Connects in a thread of its own, so that a host that does not answer keeps nobody from saying that he lives."""

    def __init__(self, connect: Connector, waker: Waker, timeout: float) -> None:
        self._connect = connect
        self._waker = waker
        self._timeout = timeout
        self._number = 0

    def dial(self, member: Member, connected: Callable[[Link], None], failed: Callable[[str], None]) -> None:
        """Connect; one of the two is called by the waiting thread, unless `cancel` or `dial` was called before."""
        self._number += 1
        number = self._number

        def attempt() -> None:
            try:
                sock = self._connect(member, self._timeout)
            except (OSError, TransportError) as error:
                reason = f"cannot connect to {member.name}: {sentence(error)}"
                self._waker.post(lambda: failed(reason) if number == self._number else None)
                return
            self._waker.post(lambda: self._hand_over(sock, number, connected))

        threading.Thread(target=attempt, name=f"connect {member.name}", daemon=True).start()

    def cancel(self) -> None:
        """Whatever is being connected is not wanted any more."""
        self._number += 1

    def _hand_over(self, sock: socket.socket, number: int, connected: Callable[[Link], None]) -> None:
        if number == self._number:
            connected(Link(sock))
        else:
            sock.close()


class Farewells:
    """Connections that are closed when their last words are out and heard: closing at once could destroy them."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._links: list[tuple[Link, float]] = []

    def __bool__(self) -> bool:
        return bool(self._links)

    def add(self, link: Link) -> None:
        """Close this one soon; at once if it is in the middle of data."""
        if link.promised:
            link.close()
        else:
            self._links.append((link, time.monotonic() + self._seconds))

    def deadline(self) -> float | None:
        """When the next one is closed at the latest."""
        return min((limit for _, limit in self._links), default=None)

    def watch(self, poll: select.poll) -> None:
        """Register for `poll`."""
        for link, _ in self._links:
            poll.register(link.socket, _IN | (_OUT if link.wants_write else 0))

    def serve(self, now: float) -> None:
        """Send what is left, read what comes, close what is done."""
        self._links = [(link, limit) for link, limit in self._links if self._goes_on(link, limit, now)]

    def close(self) -> None:
        """Close all now."""
        for link, _ in self._links:
            link.close()
        self._links.clear()

    @staticmethod
    def _goes_on(link: Link, limit: float, now: float) -> bool:
        try:
            if now < limit and link.part():
                return True
        except RemoteError:
            pass
        link.close()
        return False


@dataclass(frozen=True, slots=True)
class Connections:
    """What makes new connections, and what ends old ones."""

    dialler: Dialler
    farewells: Farewells
