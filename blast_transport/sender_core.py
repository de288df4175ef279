"""What a sender decides in one session with many receivers. No sockets, no files, no clock.

Theory of operation. Every receiver is invited. When each has answered, failed, or run out of time, the segments go
out once, in order; when the light goes on at another group, they wait until each receiver has followed. What a
receiver asks for is owed to it and goes over its own connection, whether or not there is light. A receiver hears
EndOfData when all was sent once and nothing is owed to it, and ends with Fin. Each receiver has its own state and its
own deadline, so that none waits for another longer than the invitation. Progress of a receiver is a message from it,
never bytes that its connection takes: the kernel of a stopped process takes many.

The caller pulls: `take_segment` for the light path, `take_repair` for one receiver. Messages collect in `outbox`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto

from blast_transport.bitmap import Bitmap
from blast_transport.control import EndOfData, Fin, Hello, Message, Nack, Progress, Ready, Tune
from blast_transport.errors import LocalProtocolError

_REPAIRS_PER_SEGMENT = 4


@dataclass(frozen=True, slots=True)
class SenderTimings:
    """Seconds that a sender waits.

    `connect`: for a control connection. `ready`: for the answer to the invitation. `stall`: without progress of a
    receiver that owes us an answer or is owed segments. `heartbeat`: between two Progress messages.
    """

    connect: float = 2.0
    ready: float = 3.0
    stall: float = 5.0
    heartbeat: float = 1.0


class PeerState(Enum):
    """Where one receiver stands, as the sender sees it."""

    INVITED = auto()
    READY = auto()
    TUNING = auto()
    ENDING = auto()
    COMPLETE = auto()
    FAILED = auto()


class _Event(Enum):
    READY = auto()
    TUNE = auto()
    END_OF_DATA = auto()
    STORED = auto()
    FAILURE = auto()


_TRANSITIONS: dict[tuple[PeerState, _Event], PeerState] = {
    (PeerState.INVITED, _Event.READY): PeerState.READY,
    (PeerState.INVITED, _Event.FAILURE): PeerState.FAILED,
    (PeerState.READY, _Event.TUNE): PeerState.TUNING,
    (PeerState.TUNING, _Event.READY): PeerState.READY,
    (PeerState.TUNING, _Event.FAILURE): PeerState.FAILED,
    (PeerState.READY, _Event.END_OF_DATA): PeerState.ENDING,
    (PeerState.READY, _Event.FAILURE): PeerState.FAILED,
    (PeerState.ENDING, _Event.STORED): PeerState.COMPLETE,
    (PeerState.ENDING, _Event.FAILURE): PeerState.FAILED,
}


_UNANSWERED = (PeerState.INVITED, PeerState.TUNING)
_LISTENING = (PeerState.READY, PeerState.TUNING, PeerState.ENDING)


@dataclass(slots=True)
class Peer:
    """One receiver of the session. `repairs` and `repaired_bytes` count what was sent over its connection."""

    owed: Bitmap
    progressed: float
    state: PeerState = PeerState.INVITED
    reason: str = ""
    fin: Fin | None = None
    repairs: int = 0
    repaired_bytes: int = 0
    lowest_owed: int = 0

    @property
    def over(self) -> bool:
        """This receiver has ended, well or badly."""
        return self.state in (PeerState.COMPLETE, PeerState.FAILED)


class SenderCore:
    """One session at the sender. Attributes to read: `peers` by name, `next_segment`, `hello`."""

    def __init__(
        self, hello: Hello, receivers: Iterable[str], now: float, timings: SenderTimings | None = None
    ) -> None:
        self.hello = hello
        self.peers = {name: Peer(Bitmap(hello.segments), now) for name in receivers}
        self.next_segment = 0
        self.outbox: list[tuple[str, Message]] = [(name, hello) for name in self.peers]
        self._digest: bytes | None = None
        self._timings = timings or SenderTimings()
        self._heartbeat_at = now + self._timings.heartbeat

    @property
    def inviting(self) -> bool:
        """Some receiver has neither answered the invitation, or followed to another group, nor failed."""
        return any(peer.state in _UNANSWERED for peer in self.peers.values())

    @property
    def sending(self) -> bool:
        """The invitation is over, somebody listens, and the data has not ended."""
        return self._digest is None and not self.inviting and not self.over

    @property
    def over(self) -> bool:
        """Every receiver has ended, well or badly."""
        return all(peer.over for peer in self.peers.values())

    def tune(self, group: str, port: int, now: float) -> None:
        """The data goes on at another group, when every receiver listens there. Only while `sending`.

        Raises LocalProtocolError otherwise.
        """
        if not self.sending:
            raise LocalProtocolError("the data moves to another group only while it is sent")
        for name, peer in self.peers.items():
            if not peer.over:
                self._move(peer, _Event.TUNE)
                peer.progressed = now
                self.outbox.append((name, Tune(self.hello.session, group, port)))

    def take_segment(self) -> int:
        """The next segment to multicast; equals `hello.segments` when all were taken."""
        segment = self.next_segment
        self.next_segment = min(segment + 1, self.hello.segments)
        return segment

    def take_repair(self, name: str) -> int | None:
        """The next segment owed to this receiver, None if none is; then its EndOfData may go out."""
        peer = self.peers[name]
        if peer.owed.held and not peer.over:
            segment = peer.lowest_owed = peer.owed.first_held(peer.lowest_owed)
            peer.owed.discard(segment)
            peer.repairs += 1
            peer.repaired_bytes += self.hello.length(segment)
            return segment
        if peer.state is PeerState.READY and self._digest is not None:
            self._move(peer, _Event.END_OF_DATA)
            self.outbox.append((name, EndOfData(self.hello.session, self._digest)))
        return None

    def end_of_data(self, digest: bytes, now: float) -> None:
        """Every segment was sent once; `digest` is that of the whole file."""
        self._digest = digest
        for peer in self.peers.values():
            peer.progressed = now

    def receive(self, name: str, message: Message, now: float) -> None:
        """A message from this receiver. One of another session is late and is ignored."""
        peer = self.peers[name]
        if peer.over or message.session != self.hello.session:
            return
        peer.progressed = now
        match message:
            case Ready() if peer.state is PeerState.INVITED:
                self._move(peer, _Event.READY)
                if not self.hello.group:
                    self._owe(peer, 0, self.hello.segments)
            case Ready() if peer.state is PeerState.TUNING:
                self._move(peer, _Event.READY)
            case Nack() if peer.state in _LISTENING:
                self._nack(name, peer, message)
            case Progress() if peer.state in _LISTENING:
                pass
            case Fin():
                self._fin(name, peer, message)
            case _:
                self.lose(name, f"broke the protocol: {type(message).__name__} in state {peer.state.name}")

    def lose(self, name: str, reason: str) -> None:
        """This receiver failed. No effect if it has ended already."""
        peer = self.peers[name]
        if not peer.over:
            self._move(peer, _Event.FAILURE)
            peer.reason = reason

    def deadline(self) -> float | None:
        """When `tick` has something to do at the latest; None if never."""
        if self.over:
            return None
        waits = [limit for peer in self.peers.values() if (limit := self._limit(peer)) is not None]
        return min([self._heartbeat_at, *waits])

    def tick(self, now: float) -> None:
        """Do what is due at `now`."""
        for name, peer in self.peers.items():
            limit = self._limit(peer)
            if limit is not None and now >= limit:
                self.lose(name, self._overdue(peer))
        if now >= self._heartbeat_at:
            self._heartbeat_at = now + self._timings.heartbeat
            alive = Progress(self.hello.session, self.next_segment)
            self.outbox += [(name, alive) for name, peer in self.peers.items() if not peer.over]

    def _nack(self, name: str, peer: Peer, nack: Nack) -> None:
        for first, count in nack.ranges:
            if first + count > self.hello.segments:
                self.lose(name, f"broke the protocol: asked for segments {first} to {first + count - 1}")
                return
            self._owe(peer, first, count)
        if peer.repairs + peer.owed.held > _REPAIRS_PER_SEGMENT * self.hello.segments:
            self.lose(name, f"asked for more than {_REPAIRS_PER_SEGMENT} times the file as repairs")

    def _fin(self, name: str, peer: Peer, fin: Fin) -> None:
        if fin.reason:
            self.lose(name, fin.reason)
        elif peer.state is not PeerState.ENDING:
            self.lose(name, "broke the protocol: claims to have all before the end of data")
        elif fin.digest != self._digest:
            self.lose(name, "stored a file with another digest")
        else:
            self._move(peer, _Event.STORED)
        peer.fin = fin

    @staticmethod
    def _owe(peer: Peer, first: int, count: int) -> None:
        peer.owed.add_range(first, count)
        peer.lowest_owed = min(peer.lowest_owed, first)

    def _limit(self, peer: Peer) -> float | None:
        """When this receiver will be given up unless it progresses."""
        if peer.state in _UNANSWERED:
            return peer.progressed + self._timings.ready
        if peer.state is PeerState.ENDING or (peer.state is PeerState.READY and peer.owed.held):
            return peer.progressed + self._timings.stall
        return None

    def _overdue(self, peer: Peer) -> str:
        if peer.state is PeerState.INVITED:
            return f"did not answer the invitation within {self._timings.ready:g} s"
        if peer.state is PeerState.TUNING:
            return f"did not follow to another group within {self._timings.ready:g} s"
        if peer.owed.held:
            return f"no sign of taking its repairs for {self._timings.stall:g} s"
        return f"did not confirm: no progress for {self._timings.stall:g} s after the end of data"

    @staticmethod
    def _move(peer: Peer, event: _Event) -> None:
        try:
            peer.state = _TRANSITIONS[peer.state, event]
        except KeyError:
            raise LocalProtocolError(f"{event.name} is not possible in state {peer.state.name}") from None
