"""The thread of one host of a phase along trees: polls, and lets its edges work; what it is besides, others add."""

from __future__ import annotations

import select
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable

from blast_transport.base.errors import NoThreadError, StoreError, TransportError, sentence
from blast_transport.base.moderation import Moderation
from blast_transport.base.threads import start
from blast_transport.base.waker import Waker
from blast_transport.links.dialling import Dialer, Dialling
from blast_transport.transports.trees.edge import Edge, State, Way
from blast_transport.transports.trees.events import Ended, Event, Said, StoreFailed
from blast_transport.transports.trees.parcel import Parcel
from blast_transport.transports.trees.plan import TreesPhase
from blast_transport.transports.trees.protocol.words import Word
from blast_transport.wire.codec import FRAME, VERSION
from blast_transport.wire.joining import JOIN_TYPE, Join, encode_join

_LONGEST_TURN = 0.25
"""Seconds that count of one turn: those that we ask of it, and a little."""

_GATHERED_BYTES = 1 << 17
_GATHERING_SECONDS = 0.004
"""A turn looks at every edge: what comes and goes in so short a time is left to one turn."""

_Key = tuple[int, int, int]
"""(tree, child, stream)."""


def _to_nobody(_event: Event) -> None:
    """Nobody listens any more."""


class Host(ABC):
    """A thread that ends by itself, or soon after `stop`. `events` is called in it, with `Ended` as the last."""

    def __init__(self, phase: TreesPhase, events: Callable[[Event], None], connect: Dialer) -> None:
        self.phase = phase
        now = time.monotonic()
        self._events = events
        self._waker = Waker()
        self._dialling: Dialling[_Key] = Dialling(connect, self._waker.wake)
        self._edges = {
            (number, child): Edge(Way(number, child, tree.rate), phase.timings, self._load, now)
            for number, tree in enumerate(phase.trees)
            for child in tree.children(phase.place)
        }
        self._of_tree = [
            [edge for edge in self._edges.values() if edge.tree == tree] for tree in range(len(phase.trees))
        ]
        # (parent, child, why) of edges that are lost here.
        self._lost: list[tuple[int, int, str]] = []
        self._word_at = now + phase.timings.word
        self._turned_at = now
        self._passed = 0.0
        self._moderation = Moderation(_GATHERED_BYTES, _GATHERING_SECONDS)
        self._carried_before = 0
        self._ended: Ended | None = None
        self._thread = threading.Thread(
            target=self._run, name=f"trees {phase.name(phase.place) or 'source'}", daemon=True
        )

    def start(self) -> None:
        """Begin. Raises NoThreadError, and has then given everything back."""
        try:
            start(self._thread)
        except NoThreadError as error:
            self._ended = Ended(str(error))
            self._close()
            raise

    def stop(self, reason: str) -> None:
        """End soon; from any thread."""
        self._waker.post(lambda: self._end(reason))

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the end, `timeout` seconds at most; True: it has come."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    @abstractmethod
    def _load(self, number: int) -> Parcel | None:
        """A block that we hold, for one child; None if it is there no more."""

    @abstractmethod
    def _watch(self, poll: select.poll, now: float) -> float:
        """Register everything but edges; seconds until there is something to do."""

    @abstractmethod
    def _work(self, ready: dict[int, int], now: float) -> None:
        """Do what can be done; `ready` are the events by descriptor. Raises LocalError."""

    @abstractmethod
    def _give_back(self) -> None:
        """Give everything back but the edges."""

    def _word(self, now: float) -> Word:
        """What is to be told of this host."""
        rates: dict[int, tuple[float, bool]] = {}
        for edge in self._edges.values():
            rate, held_back = edge.measure(now)
            before, was_held = rates.get(edge.child, (0.0, False))
            rates[edge.child] = before + rate, was_held or held_back
        flows = tuple((child, rate, held) for child, (rate, held) in rates.items())
        return Word(flows, tuple(self._lost))

    def _note_lost(self, parent: int, child: int, reason: str) -> None:
        """An edge is lost: who watches over the phase hears so at once."""
        if not any((parent, child) == (one, other) for one, other, _ in self._lost):
            self._lost.append((parent, child, reason))
            self._word_at = 0.0

    def _end(self, reason: str) -> None:
        if self._ended is None:
            self._ended = Ended(reason)

    def _run(self) -> None:
        try:
            while self._ended is None:
                self._turn()
        except (TransportError, OSError) as error:
            if isinstance(error, StoreError):
                self._events(StoreFailed(str(error)))
            self._ended = Ended(sentence(error))
        finally:
            self._close()
            # Who hears of us mostly holds us: together we would stay until garbage is collected, with all our memory.
            events, self._events = self._events, _to_nobody
            events(self._ended or Ended("an error of the program; see its log"))

    def _carried(self) -> int:
        """Bytes both ways, over all that is connected."""
        return sum(edge.carried for edge in self._edges.values())

    def _gather(self) -> None:
        """Let a turn have enough to do."""
        before, self._carried_before = self._carried_before, self._carried()
        now = time.monotonic()
        self._moderation.read(max(0, self._carried_before - before), now)
        if (pause := self._moderation.pause(now)) > 0:
            time.sleep(pause)

    def _turn(self) -> None:
        self._gather()
        poll = select.poll()
        poll.register(self._waker, select.POLLIN)
        now = time.monotonic()
        wait = min(self._watch(poll, now), max(0.0, self._word_at - now))
        for edge in self._edges.values():
            if edge.live:
                wait = 0.0 if edge.watch(poll) else min(wait, edge.wait(now), self._until_retry(edge, now))
        ready = dict(poll.poll(max(0.0, wait) * 1000))
        if self._waker.fileno() in ready:
            self._waker.run()
        if self._ended is not None:
            return
        now = time.monotonic()
        # Whoever was stopped himself, or kept from the processor, must not take others for dead.
        self._passed, self._turned_at = min(now - self._turned_at, _LONGEST_TURN), now
        self._connect(now)
        self._work(ready, now)
        for edge in self._edges.values():
            if edge.live:
                self._serve(edge, ready, now)
        if now >= self._word_at:
            self._word_at = now + self.phase.timings.word
            self._events(Said(self._word(now)))

    def _serve(self, edge: Edge, ready: dict[int, int], now: float) -> None:
        edge.work(ready, now)
        edge.tick(now, self._passed)
        if not edge.live:
            self._note_lost(self.phase.place, edge.child, edge.reason)

    @staticmethod
    def _until_retry(edge: Edge, now: float) -> float:
        return max(0.0, edge.again_at - now) if edge.state is State.CONNECTING else 1.0

    def _connect(self, now: float) -> None:
        """Open the connections that are wanted, and take those that have come about."""
        for (tree, child, stream), outcome in self._dialling.take():
            edge = self._edges[tree, child]
            if isinstance(outcome, str):
                edge.failed(outcome, now)
                if not edge.live:
                    self._note_lost(self.phase.place, child, edge.reason)
            else:
                edge.connected(outcome, stream, self._join(), now)
        for (tree, child), edge in self._edges.items():
            wanted = edge.wanted(now)
            if wanted is not None and (tree, child, wanted) not in self._dialling:
                self._dialling.begin((tree, child, wanted), self.phase.members[child], self.phase.timings.answer)

    def _join(self) -> bytes:
        phase = self.phase
        body = encode_join(Join(phase.session, phase.number, phase.token, phase.name(phase.place)))
        return FRAME.pack(len(body), JOIN_TYPE, VERSION) + body

    def _close(self) -> None:
        self._dialling.close()
        for edge in self._edges.values():
            edge.close()
        self._give_back()
        self._waker.close()
        # They call us, and hold our memory.
        self._edges.clear()
        self._of_tree.clear()
