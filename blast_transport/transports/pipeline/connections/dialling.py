"""Dialing of other nodes, in threads, so that a host that does not answer delays no heartbeats."""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Callable
from contextlib import suppress

from blast_transport.base.errors import NoThreadError, TransportError, sentence
from blast_transport.base.threads import start_thread
from blast_transport.base.waker import Waker
from blast_transport.links.dialling import Dialer
from blast_transport.transports.pipeline.connections.link import Link
from blast_transport.transports.pipeline.protocol.phase import ChainMember, PipelinePhase
from blast_transport.wire.joining import Join

Failed = Callable[[str, bool], None]
"""Called with the reason why there is no connection, and whether the whole time passed without an answer."""

_ALMOST = 0.9
_MIN_SECONDS = 0.001
_EVIDENCE = 2.5
"""Multiple of a probe's time within which another answer proves that this host's network works."""


def join_message(phase: PipelinePhase) -> Join:
    """Return the first message on a connection to another node."""
    return Join(phase.session, phase.number, phase.token, phase.chain[phase.index].name)


class Dialler:
    """Dialer of one node at a time."""

    def __init__(self, connect: Dialer, waker: Waker, timeout: float) -> None:
        self._connect = connect
        self._waker = waker
        self._timeout = timeout
        self._number = 0

    def dial(self, member: ChainMember, connected: Callable[[Link], None], failed: Failed) -> None:
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
        """Cancel the pending connection."""
        self._number += 1

    def _hand_over(self, sock: socket.socket, number: int, connected: Callable[[Link], None]) -> None:
        if number == self._number:
            connected(Link(sock))
        else:
            sock.close()


class LivenessProbes:
    """Concurrent probes of nodes that may be needed, by position: whether a program runs there.

    A connection alone proves nothing, because the kernel of a frozen host accepts it. Only a live program authenticates
    this host, and closes the connection when it is not used. Silence counts only while other nodes answer: otherwise
    this host may be at fault. `seconds`: maximum time of a probe.
    """

    def __init__(self, connect: Dialer, waker: Waker, seconds: float) -> None:
        self._connect = connect
        self._waker = waker
        self._seconds = seconds
        self._number = 0
        # By place: the number of its latest probe, and until when what was found holds, for it ages.
        self._sent: dict[int, int] = {}
        self._silent: dict[int, float] = {}
        self._answered = -math.inf
        self._awaited: tuple[int, Callable[[], None]] | None = None

    def send(self, place: int, member: ChainMember) -> None:
        """Probe this one."""
        self._number += 1
        number = self._sent[place] = self._number
        self._silent.pop(place, None)

        def probe() -> None:
            lives = _lives(self._connect, member, self._seconds)
            self._waker.post(lambda: self._note(place, number, lives))

        # Without a thread, the connection attempt itself shows the result.
        with suppress(NoThreadError):
            start_thread(f"probe of {member.name}", probe)

    def await_silence(self, place: int, silent: Callable[[], None]) -> None:
        """Call `silent` from the loop as soon as the node is known to be dead; only the latest call counts."""
        self._awaited = (place, silent)
        self._waker.post(self._deliver)

    def cancel(self) -> None:
        """Cancel the callback."""
        self._awaited = None

    def recall(self) -> None:
        """Cancel all probes."""
        self._awaited = None
        self._sent.clear()
        self._silent.clear()

    def _note(self, place: int, number: int, lives: bool) -> None:
        if self._sent.get(place) != number:
            return
        del self._sent[place]
        now = time.monotonic()
        if lives:
            self._answered = now
        else:
            self._silent[place] = now + self._seconds
        self._deliver()

    def _deliver(self) -> None:
        now = time.monotonic()
        if self._awaited is None or now >= self._silent.get(self._awaited[0], 0.0):
            return
        if now < self._answered + _EVIDENCE * self._seconds:
            (_, silent), self._awaited = self._awaited, None
            silent()


def _lives(connect: Dialer, member: ChainMember, seconds: float) -> bool:
    """Return False if two attempts got no answer, because a packet may be lost. A refusal is an answer."""
    return any(_answers(connect, member, seconds / 2) for _ in range(2))


def _answers(connect: Dialer, member: ChainMember, seconds: float) -> bool:
    until = time.monotonic() + seconds
    try:
        with connect(member, seconds) as sock:
            sock.shutdown(socket.SHUT_WR)
            sock.settimeout(max(_MIN_SECONDS, until - time.monotonic()))
            sock.recv(1)
    except (OSError, TransportError):
        return time.monotonic() < until - (1 - _ALMOST) * seconds
    return True
