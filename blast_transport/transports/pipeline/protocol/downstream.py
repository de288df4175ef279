"""The sending half of a node's core, for its successor. No sockets, no clock.

Theory of operation. The node connects to the next one, which answers GET(its offset) and is served from there; after
the last byte, END (or QUIT) and the REPORT follow; PASSED comes back when the last node has delivered the report. A
successor is dead when its connection fails, or without a heartbeat for a while: accepted bytes prove nothing, because
the kernel of a frozen host accepts them too; and a node that only waits for its own successor keeps sending heartbeats.
The node then connects to the one after it, which names its offset. With none left, this node is the tail, which
delivers the report. Hosts in one place fail together, a rack at a time, so before a silent node counts as dead, many of
those behind it are probed at once, at the cost of one. A successor that lives, was given data, and by its own fault
accepts less than the phase's slowest rate, or less than half of the arriving data although data lies before it, is
skipped like a dead one; so is one that reports a slow store, if this node's store or one behind it is not slow. A
successor that waits for data while much lies before it has a slow link from this node: it is skipped, once; if the next
one waits as well, this node's own link is slow, and this node leaves the chain.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum, auto

from blast_transport.base.errors import LocalProtocolError, RemoteProtocolError
from blast_transport.store.blocks.store_pace import StorePace
from blast_transport.transports.pipeline.protocol.events import (
    BytesLost,
    BytesNoLongerHeld,
    BytesSent,
    CloseDownstream,
    Connect,
    ProbeNodes,
    SendDownstream,
    Serve,
    Started,
    SuccessorLost,
)
from blast_transport.transports.pipeline.protocol.messages import (
    End,
    Forget,
    Get,
    Passed,
    PipelineHeartbeat,
    Quit,
    QuitReason,
    Report,
)
from blast_transport.transports.pipeline.protocol.node_state import NodeState
from blast_transport.transports.pipeline.protocol.pace import PaceSample, PaceVerdict, SuccessorPace, is_far_behind
from blast_transport.transports.pipeline.protocol.phase import NodeOutcome, Reported
from blast_transport.transports.pipeline.protocol.skips import Skips

_PROBED = 32
"""Nodes that are probed at once: a rack."""


class DownstreamState(Enum):
    """State of the connection to the successor."""

    IDLE = auto()
    CONNECTING = auto()
    PAUSED = auto()
    SERVING = auto()
    FORGOTTEN = auto()
    ENDING = auto()
    TAIL = auto()
    PASSED = auto()


_LINKED = (DownstreamState.SERVING, DownstreamState.FORGOTTEN, DownstreamState.ENDING)


class Downstream:
    """Sending half of a core.

    `passed` is called when the report is delivered; the successor was given the bytes before `sent`, and reports that
    it holds those before `taken`. `better_since`: time since which the store of a node behind keeps up. `end_sent`: END
    was sent, which is final. `slow_link`: reason why this node's own link is slow, and it leaves.
    """

    def __init__(self, node: NodeState, passed: Callable[[float], None]) -> None:
        self.state = DownstreamState.IDLE
        self.successor = node.phase.index
        self.sent = self.taken = node.position
        self.better_since: float | None = None
        self.end_sent = False
        self.slow_link = ""
        # The source had begun before this node connected.
        self._all_know = False
        self._ending_at = 0.0
        self._node = node
        self._passed = passed
        self._timings = node.phase.timings
        self._last_received = 0.0
        self._due = 0.0
        self._pace = SuccessorPace(node.phase.slowest_rate, self._timings.slow, judges_links=node.phase.index > 0)
        self._probed = 0
        self._probed_at = -math.inf

    @property
    def serving(self) -> bool:
        """Return whether the successor accepts data: none before the source has begun, so data proves that it has."""
        return self.state is DownstreamState.SERVING and self._node.begun

    @property
    def alone(self) -> bool:
        """Return whether no node behind is left, or needs anything."""
        return self.state in (DownstreamState.TAIL, DownstreamState.PASSED)

    @property
    def tail(self) -> bool:
        """Return whether no node behind is left."""
        return self.state is DownstreamState.TAIL

    @property
    def lagging(self) -> bool:
        """Return whether the successor accepts so little of the data that this node should not wait for it."""
        data = self._node.skips.data_before
        return self.serving and self._pace.lags(data(self._node.position), data(self.taken))

    @property
    def skips(self) -> Skips:
        """Return the ranges that are omitted for the successor."""
        return self._node.skips

    def ahead(self, position: int) -> int:
        """Return the bytes that the successor has yet to accept of the held data, which ends at `position`."""
        data = self._node.skips.data_before
        return data(position) - data(self.taken)

    @property
    def linked(self) -> bool:
        """Return whether the successor has named its offset, and waits for data."""
        return self.state in _LINKED

    def handle(self, event: object, now: float) -> None:
        """Handle an event or a message of the successor.

        Raise RemoteProtocolError if the successor must not send this now, LocalProtocolError if the shell must not.
        """
        action = _TABLE.get((self.state, type(event)))
        if action is None:
            error = LocalProtocolError if isinstance(event, _LOCAL) else RemoteProtocolError
            raise error(f"{type(event).__name__} is not possible in state {self.state.name}")
        if not isinstance(event, _LOCAL):
            self._last_received = now
            if now >= self._probed_at + self._timings.silence:
                self._probed = 0
        action(self, event, now)

    def deadline(self) -> float | None:
        """Return the latest time for the next `tick`; None if none is due."""
        limit = self._limit()
        return limit if limit is None or not self._to_probe else limit - self._timings.probe

    def tick(self, now: float) -> None:
        """Do what is due at `now`."""
        limit = self._limit()
        if limit is None:
            return
        if self._to_probe and now >= limit - self._timings.probe:
            self._probed_at = now
            self._probe()
        if now < limit:
            return
        if self.state is DownstreamState.PAUSED:
            self._connect(now)
        elif self.state is DownstreamState.CONNECTING:
            self._skip(f"did not answer within {self._timings.answer:g} s", now)
            self._probe()
        else:
            self._skip(f"no heartbeat for {self._timings.silence:g} s", now)
            self._probe()

    def _limit(self) -> float | None:
        if self.state in (DownstreamState.CONNECTING, DownstreamState.PAUSED):
            return self._due
        return self._last_received + self._timings.silence if self.linked else None

    @property
    def _to_probe(self) -> bool:
        """Return whether the present silence has lasted without probing the nodes behind."""
        return self._probed <= self.successor and self.state is not DownstreamState.PAUSED

    def settle(self, now: float) -> None:
        """Send the end when everything before it is sent. Call it when the end, the report or data has arrived."""
        if self.state is DownstreamState.TAIL:
            self._deliver(now)
        elif self.state in (DownstreamState.SERVING, DownstreamState.FORGOTTEN):
            if self._node.quit is not None:
                self._send_quit(self._node.quit, now)
            elif self.state is DownstreamState.SERVING:
                self._send_end(now)

    def _start(self, event: Started, now: float) -> None:
        self._next(now)

    def _next(self, now: float) -> None:
        self.successor += 1
        if self.successor < len(self._node.phase.chain):
            self._connect(now)
        else:
            self.state, self.better_since = DownstreamState.TAIL, None
            self.settle(now)

    def _connect(self, now: float) -> None:
        self.state, self._due = DownstreamState.CONNECTING, now + self._timings.answer
        self._all_know = self._node.begun
        self._node.emit(Connect(self.successor))

    def _probe(self) -> None:
        """Find out who of those behind the next one lives, each once."""
        first = max(self.successor + 1, self._probed)
        stop = min(self.successor + 1 + _PROBED, len(self._node.phase.chain))
        self._probed = max(first, stop)
        if first < stop:
            self._node.emit(ProbeNodes(tuple(range(first, stop))))

    def _skip(self, reason: str, now: float) -> None:
        """Continue without the successor, and notify it in case it lives."""
        self._node.lose(self.successor, reason)
        self._node.emit(SendDownstream(Quit(QuitReason.EXCLUDED, reason)), CloseDownstream())
        self._next(now)

    def _not_there(self, lost: SuccessorLost, now: float) -> None:
        """Retry a refusing node while the chain is assembled, because it may not have the phase yet.

        Skip it if the source had begun before this node connected.
        """
        if lost.unanswered or self._all_know:
            self._skip(lost.reason, now)
            if lost.unanswered:
                self._probe()
            return
        self._node.emit(CloseDownstream())
        self.state, self._due = DownstreamState.PAUSED, now + self._timings.retry

    def _lost(self, lost: SuccessorLost, now: float) -> None:
        self._skip(lost.reason, now)

    def _get(self, get: Get, now: float) -> None:
        self.state = DownstreamState.SERVING
        self.sent = self.taken = get.offset
        self.better_since = None
        self._pace.restart(self._sight(now))
        self._node.emit(Serve(get.offset))
        self.settle(now)

    def _sent(self, sent: BytesSent, now: float) -> None:
        self.sent = sent.position
        self.settle(now)

    def _unheld(self, unheld: BytesNoLongerHeld, now: float) -> None:
        self.state = DownstreamState.FORGOTTEN
        self._node.emit(SendDownstream(Forget(unheld.first_held)))

    def _torn(self, torn: BytesLost, now: float) -> None:
        self._connect(now)

    def _alive(self, alive: PipelineHeartbeat, now: float) -> None:
        self.taken = max(self.taken, alive.position)
        if alive.store in (StorePace.BEHIND, StorePace.SLOW):
            self.better_since = None
        elif self.better_since is None:
            self.better_since = now
        if not self._node.begun:
            self._pace.restart(self._sight(now))
        slow = self._pace.see(self._sight(now), alive.held_up, alive.starved) if self.serving else None
        if slow is None and self._holds_up(alive.store, now) and self._pace.convict():
            slow = PaceVerdict("excluded: its store is far behind")
        if slow is not None and slow.ours:
            self.slow_link = slow.reason
        elif slow is not None:
            self._skip(slow.reason, now)

    def _holds_up(self, store: StorePace, now: float) -> bool:
        """Return whether the successor's store is slow while this node's, or for a source another one, keeps up."""
        node = self._node
        if node.store is not StorePace.KEEPS_UP or store < (
            StorePace.ALONE if node.phase.index == 0 else StorePace.SLOW
        ):
            return False
        if self.state is DownstreamState.SERVING or (node.stop is not None and self.taken < node.stop):
            return True
        return is_far_behind(self._ending_at, node.stored_at, now, self._timings.slow)

    def _sight(self, now: float) -> PaceSample:
        data = self._node.skips.data_before
        return PaceSample(now, data(self._node.position), data(self.sent), data(self.taken))

    def _quit(self, quit_: Quit, now: float) -> None:
        if quit_.reason is QuitReason.LEFT:
            # It may be the first of many with slow links: if each left in turn, the sender would serve them all.
            self._pace.judges_links = False
            self._skip(quit_.text, now)
        elif quit_.reason is QuitReason.EXCLUDED:
            self._node.end(NodeOutcome.EXCLUDED, quit_.text)
        elif quit_.reason is QuitReason.LOST:
            for place in range(self.successor, len(self._node.phase.chain)):
                self._node.lose(place, quit_.text)
            self._node.emit(CloseDownstream())
            self.successor = len(self._node.phase.chain) - 1
            self._next(now)
        else:
            raise RemoteProtocolError(f"QUIT {quit_.reason.name} from a successor")

    def _send_quit(self, quit_: Quit, now: float) -> None:
        if quit_.reason is QuitReason.LOST:
            self._node.emit(SendDownstream(quit_), CloseDownstream())
            self._deliver_without_path(now)
        elif self._node.report_ready:
            self._node.emit(SendDownstream(quit_), SendDownstream(Report(dict(self._node.failed))))
            self.state = DownstreamState.ENDING

    def _send_end(self, now: float) -> None:
        node = self._node
        if node.stop is not None and self.sent >= node.stop and node.report_ready:
            node.emit(SendDownstream(End(node.stop, node.final)), SendDownstream(Report(dict(node.failed))))
            self.state, self.end_sent, self._ending_at = DownstreamState.ENDING, True, now

    def _deliver(self, now: float) -> None:
        node = self._node
        if node.quit is not None and node.quit.reason is QuitReason.LOST:
            self._deliver_without_path(now)
        elif node.settled:
            node.notify(Reported(node.named_failures()))
            self.state = DownstreamState.PASSED
            self._passed(now)

    def _deliver_without_path(self, now: float) -> None:
        """End as a node behind a lost range, without a path to the source: the node before reports it."""
        self.state = DownstreamState.PASSED
        self._node.end_now(NodeOutcome.FORGOTTEN, "")

    def _report_passed(self, passed: Passed, now: float) -> None:
        self._node.learn(passed.failed)
        self.state = DownstreamState.PASSED
        self.better_since = self.better_since or now
        self._passed(now)

    def _ignore(self, event: object, now: float) -> None:
        """Ignore late messages of a successor that is done."""


_LOCAL = (Started, SuccessorLost, BytesSent, BytesNoLongerHeld, BytesLost)
_ACTION = Callable[..., None]
_TABLE: dict[tuple[DownstreamState, type], _ACTION] = {
    (DownstreamState.IDLE, Started): Downstream._start,
    (DownstreamState.CONNECTING, Get): Downstream._get,
    (DownstreamState.CONNECTING, Quit): Downstream._quit,
    (DownstreamState.CONNECTING, SuccessorLost): Downstream._not_there,
    (DownstreamState.SERVING, BytesSent): Downstream._sent,
    (DownstreamState.SERVING, BytesNoLongerHeld): Downstream._unheld,
    (DownstreamState.SERVING, BytesLost): Downstream._torn,
    (DownstreamState.SERVING, PipelineHeartbeat): Downstream._alive,
    (DownstreamState.SERVING, Quit): Downstream._quit,
    (DownstreamState.SERVING, SuccessorLost): Downstream._lost,
    (DownstreamState.FORGOTTEN, Get): Downstream._get,
    (DownstreamState.FORGOTTEN, PipelineHeartbeat): Downstream._alive,
    (DownstreamState.FORGOTTEN, Quit): Downstream._quit,
    (DownstreamState.FORGOTTEN, SuccessorLost): Downstream._lost,
    (DownstreamState.ENDING, PipelineHeartbeat): Downstream._alive,
    (DownstreamState.ENDING, Passed): Downstream._report_passed,
    (DownstreamState.ENDING, Quit): Downstream._quit,
    (DownstreamState.ENDING, SuccessorLost): Downstream._lost,
    (DownstreamState.PASSED, PipelineHeartbeat): Downstream._ignore,
    (DownstreamState.PASSED, Quit): Downstream._ignore,
    (DownstreamState.PASSED, SuccessorLost): Downstream._ignore,
}
