"""Connecting to other nodes, in threads: a host that does not answer keeps nobody from saying that he lives."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

from blast_transport.base.errors import NoThreadError, TransportError, sentence
from blast_transport.base.threads import start_thread
from blast_transport.carriers.pipeline.connections.link import Link
from blast_transport.carriers.pipeline.connections.waker import Waker
from blast_transport.carriers.pipeline.protocol.leg import Member, PipelineLeg
from blast_transport.wire.joining import Join

Connector = Callable[[Member, float], socket.socket]
"""(whom, seconds at most) -> a connected socket, TLS or not. Raises OSError, TransportError."""

Failed = Callable[[str, bool], None]
"""Told why there is no connection, and whether nothing was heard for all the time."""

_ALMOST = 0.9


def connect_plain(member: Member, timeout: float) -> socket.socket:
    """A TCP connection without TLS. Raises OSError."""
    return socket.create_connection((member.host, member.port), timeout)


def join_message(leg: PipelineLeg) -> Join:
    """What we say first to whomever we connect to."""
    return Join(leg.session, leg.number, leg.token, leg.chain[leg.index].name)


class Dialler:
    """Connects to one node at a time."""

    def __init__(self, connect: Connector, waker: Waker, timeout: float) -> None:
        self._connect = connect
        self._waker = waker
        self._timeout = timeout
        self._number = 0

    def dial(self, member: Member, connected: Callable[[Link], None], failed: Failed) -> None:
        """Connect; one of the two is called by the waiting thread, unless `cancel` or `dial` was called before."""
        self._number += 1
        number = self._number

        def attempt() -> None:
            began = time.monotonic()
            try:
                sock = self._connect(member, self._timeout)
            except (OSError, TransportError) as error:
                reason = f"cannot connect to {member.name}: {sentence(error)}"
                unanswered = time.monotonic() - began >= _ALMOST * self._timeout
                self._waker.post(lambda: failed(reason, unanswered) if number == self._number else None)
                return
            self._waker.post(lambda: self._hand_over(sock, number, connected))

        try:
            start_thread(f"connect {member.name}", attempt)
        except NoThreadError as error:
            reason = f"cannot connect to {member.name}: {error}"
            self._waker.post(lambda: failed(reason, False) if number == self._number else None)

    def cancel(self) -> None:
        """Whatever is being connected is not wanted any more."""
        self._number += 1

    def _hand_over(self, sock: socket.socket, number: int, connected: Callable[[Link], None]) -> None:
        if number == self._number:
            connected(Link(sock))
        else:
            sock.close()


class Scouts:
    """Connections made at the same time to nodes that may be needed, by place."""

    def __init__(self, connect: Connector, waker: Waker, timeout: float) -> None:
        self._connect = connect
        self._waker = waker
        self._timeout = timeout
        self._diallers: dict[int, Dialler] = {}
        self._found: dict[int, Link | tuple[str, bool]] = {}
        self._wanted: tuple[int, Callable[[Link], None], Failed] | None = None

    def __contains__(self, place: int) -> bool:
        return place in self._diallers

    def send(self, place: int, member: Member) -> None:
        """Try this one."""
        self._diallers[place] = dialler = Dialler(self._connect, self._waker, self._timeout)
        dialler.dial(member, lambda link: self._note(place, link), lambda *failure: self._note(place, failure))

    def hand_over(self, place: int, connected: Callable[[Link], None], failed: Failed) -> None:
        """Call one of the two as soon as it is known, from the loop; the place is not scouted any more."""
        self._wanted = (place, connected, failed)
        if place in self._found:
            self._waker.post(self._deliver)

    def cancel(self) -> None:
        """Nobody wants what is being handed over."""
        if self._wanted is not None:
            (place, *_), self._wanted = self._wanted, None
            self._forget(place)

    def recall(self) -> None:
        """None of them is needed."""
        self._wanted = None
        for place in list(self._diallers):
            self._forget(place)

    def _note(self, place: int, found: Link | tuple[str, bool]) -> None:
        self._found[place] = found
        if self._wanted is not None and self._wanted[0] == place:
            self._deliver()

    def _deliver(self) -> None:
        if self._wanted is None or self._wanted[0] not in self._found:
            return
        (place, connected, failed), self._wanted = self._wanted, None
        found = self._found.pop(place)
        del self._diallers[place]
        if isinstance(found, Link):
            connected(found)
        else:
            failed(*found)

    def _forget(self, place: int) -> None:
        self._diallers.pop(place).cancel()
        found = self._found.pop(place, None)
        if isinstance(found, Link):
            found.close()
