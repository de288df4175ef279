"""Thread of one host of a trees phase: polls, and runs its edges; subclasses add their parts."""

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
from blast_transport.transports.trees.edge import ChildPath, Edge, EdgeState
from blast_transport.transports.trees.events import Event, ReportReady, TreesEnded, TreeStoreFailed
from blast_transport.transports.trees.parcel import Parcel
from blast_transport.transports.trees.plan import TreesPhase
from blast_transport.transports.trees.protocol.fields import HostReport
from blast_transport.wire.codec import FRAME, VERSION
from blast_transport.wire.joining import JOIN_TYPE, Join, encode_join

_MAX_STEP_SECONDS = 0.25
"""Maximum seconds that one step counts: its time limit, and a margin."""

_GATHERED_BYTES = 1 << 17
_GATHERING_SECONDS = 0.004
"""A step visits every edge: events within this time are processed in one step."""

_Key = tuple[int, int, int]
"""(tree, child, stream)."""


def _ignore(_event: Event) -> None:
    """Ignore the event."""


class TreeHost(ABC):
    """Thread that ends by itself, or soon after `stop`. It calls `events`, with `TreesEnded` as the last."""

    def __init__(self, phase: TreesPhase, events: Callable[[Event], None], connect: Dialer) -> None:
        self.phase = phase
        now = time.monotonic()
        self._events = events
        self._waker = Waker()
        self._dialling: Dialling[_Key] = Dialling(connect, self._waker.wake)
        self._edges = {
            (number, child): Edge(ChildPath(number, child, tree.rate), phase.timings, self._load, now)
            for number, tree in enumerate(phase.trees)
            for child in tree.children(phase.place)
        }
        self._of_tree = [
            [edge for edge in self._edges.values() if edge.tree == tree] for tree in range(len(phase.trees))
        ]
        # (parent, child, why) of edges that are lost here.
        self._lost: list[tuple[int, int, str]] = []
        self._word_at = now + phase.timings.word
        self._stepped_at = now
        self._passed = 0.0
        self._moderation = Moderation(_GATHERED_BYTES, _GATHERING_SECONDS)
        self._carried_before = 0
        self._ended: TreesEnded | None = None
        self._thread = threading.Thread(
            target=self._run, name=f"trees {phase.name(phase.place) or 'source'}", daemon=True
        )

    def start(self) -> None:
        """Begin. Raises NoThreadError, and has then given everything back."""
        try:
            start(self._thread)
        except NoThreadError as error:
            self._ended = TreesEnded(str(error))
            self._close()
            raise

    def stop(self, reason: str) -> None:
        """End soon; from any thread."""
        self._waker.post(lambda: self._end(reason))

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the end, `timeout` seconds at most; return true if it has come."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    @abstractmethod
    def _load(self, number: int) -> Parcel | None:
        """Load a held block for one child; return None if it is no longer held."""

    @abstractmethod
    def _watch(self, poll: select.poll, now: float) -> float:
        """Register everything but edges; return the seconds until there is something to do."""

    @abstractmethod
    def _work(self, ready: dict[int, int], now: float) -> None:
        """Do what can be done; `ready` are the events by descriptor. Raises LocalError."""

    @abstractmethod
    def _give_back(self) -> None:
        """Give everything back but the edges."""

    def _word(self, now: float) -> HostReport:
        """Return the report of this host."""
        rates: dict[int, tuple[float, bool]] = {}
        for edge in self._edges.values():
            rate, held_back = edge.measure(now)
            before, was_held = rates.get(edge.child, (0.0, False))
            rates[edge.child] = before + rate, was_held or held_back
        flows = tuple((child, rate, held) for child, (rate, held) in rates.items())
        return HostReport(flows, tuple(self._lost))

    def _note_lost(self, parent: int, child: int, reason: str) -> None:
        """Record a lost edge and report it at once."""
        if not any((parent, child) == (one, other) for one, other, _ in self._lost):
            self._lost.append((parent, child, reason))
            self._word_at = 0.0

    def _end(self, reason: str) -> None:
        if self._ended is None:
            self._ended = TreesEnded(reason)

    def _run(self) -> None:
        try:
            while self._ended is None:
                self._step()
        except (TransportError, OSError) as error:
            if isinstance(error, StoreError):
                self._events(TreeStoreFailed(str(error)))
            self._ended = TreesEnded(sentence(error))
        finally:
            self._close()
            # The receiver of events usually refers to this object: the cycle would keep all memory until garbage
            # collection.
            events, self._events = self._events, _ignore
            events(self._ended or TreesEnded("an error of the program; see its log"))

    def _carried(self) -> int:
        """Return the bytes in both directions, over all connections."""
        return sum(edge.carried for edge in self._edges.values())

    def _gather(self) -> None:
        """Let a turn have enough to do."""
        before, self._carried_before = self._carried_before, self._carried()
        now = time.monotonic()
        self._moderation.read(max(0, self._carried_before - before), now)
        if (pause := self._moderation.pause(now)) > 0:
            time.sleep(pause)

    def _step(self) -> None:
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
        # A process that was stopped must not consider others dead.
        self._passed, self._stepped_at = min(now - self._stepped_at, _MAX_STEP_SECONDS), now
        self._connect(now)
        self._work(ready, now)
        for edge in self._edges.values():
            if edge.live:
                self._serve(edge, ready, now)
        if now >= self._word_at:
            self._word_at = now + self.phase.timings.word
            self._events(ReportReady(self._word(now)))

    def _serve(self, edge: Edge, ready: dict[int, int], now: float) -> None:
        edge.work(ready, now)
        edge.tick(now, self._passed)
        if not edge.live:
            self._note_lost(self.phase.place, edge.child, edge.reason)

    @staticmethod
    def _until_retry(edge: Edge, now: float) -> float:
        return max(0.0, edge.again_at - now) if edge.state is EdgeState.CONNECTING else 1.0

    def _connect(self, now: float) -> None:
        """Open the connections that are needed, and take over the ones that are established."""
        for (tree, child, stream), outcome in self._dialling.take():
            edge = self._edges[tree, child]
            if isinstance(outcome, str):
                edge.failed(outcome, now)
                if not edge.live:
                    self._note_lost(self.phase.place, child, edge.reason)
            else:
                edge.connected(outcome, stream, self._join(), now)
        for (tree, child), edge in self._edges.items():
            stream_to_connect = edge.stream_to_connect(now)
            if stream_to_connect is not None and (tree, child, stream_to_connect) not in self._dialling:
                self._dialling.begin(
                    (tree, child, stream_to_connect), self.phase.members[child], self.phase.timings.answer
                )

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
        # They refer to this object, and hold its memory.
        self._edges.clear()
        self._of_tree.clear()
