"""Core of a pipeline's node: its two halves together. No sockets, no files, no clock.

`NodeCore` is for every node but the first, `SourceCore` for the first. Both receive events with the time and return
commands for their shell. The halves, each a table of states and events, are `upstream` and `downstream`.
"""

from __future__ import annotations

from collections.abc import Callable

from blast_transport.base.errors import RemoteProtocolError
from blast_transport.store.blocks.store_pace import StorePace
from blast_transport.transports.pipeline.protocol.downstream import Downstream
from blast_transport.transports.pipeline.protocol.events import (
    BytesArrived,
    BytesLost,
    BytesNoLongerHeld,
    BytesSent,
    CloseDownstream,
    CloseUpstream,
    Command,
    Event,
    FetchLost,
    FromPredecessor,
    FromSource,
    FromSuccessor,
    Passing,
    PredecessorLost,
    SendDownstream,
    SendUpstream,
    Started,
    SuccessorLost,
)
from blast_transport.transports.pipeline.protocol.messages import Message, PipelineHeartbeat, Quit, QuitReason, Report
from blast_transport.transports.pipeline.protocol.node_state import NodeState
from blast_transport.transports.pipeline.protocol.pace import is_far_behind
from blast_transport.transports.pipeline.protocol.phase import (
    NodeOutcome,
    PhaseDrained,
    PhaseProgress,
    PipelinePhase,
    Reported,
)
from blast_transport.transports.pipeline.protocol.skips import Skips
from blast_transport.transports.pipeline.protocol.upstream import Upstream

_CREDIT_BYTES = 1 << 20
"""Bytes after which the predecessor gets a report of the position, for which it may wait."""

_STARVED_SHARE = 0.5
"""Share of the heartbeat interval: a node that waits for data longer than that could accept more."""

_DOWN_EVENTS = (Started, SuccessorLost, BytesSent, BytesNoLongerHeld, BytesLost)


class NodeCore:
    """A node that holds all bytes before `position` at the start; `skips` is filled with what it passes over."""

    def __init__(self, phase: PipelinePhase, position: int, skips: Skips | None = None) -> None:
        self.node = NodeState(phase, position, skips)
        self.down = Downstream(self.node, self._below_passed)
        self.up = Upstream(self.node, self.down.settle, self._send_done)
        self._beat = _HeartbeatTimer(self.node, self._greet)
        self._acknowledged = position
        self._waited = 0.0

    def handle(self, event: Event, now: float) -> list[Command]:
        """Handle this event. Raise LocalProtocolError if it is impossible now.

        A neighbor that sends an invalid message counts as lost.
        """
        if self.node.over:
            return []
        match event:
            case FromSuccessor(message):
                self._from_successor(message, now)
                if self.down.slow_link:
                    return self.leave(NodeOutcome.EXCLUDED, self.down.slow_link)
            case FromPredecessor(message):
                self._from_predecessor(message, now)
            case FromSource():
                self._from_source(event, now)
            case Started():
                self.up.start(now)
                self.down.handle(event, now)
            case _ if isinstance(event, _DOWN_EVENTS):
                self.down.handle(event, now)
            case BytesArrived():
                self.up.handle(event, now)
                self._acknowledge()
            case _:
                self.up.handle(event, now)
        return self._take()

    def leave(self, outcome: NodeOutcome, reason: str) -> list[Command]:
        """Leave because of a local event; the predecessor gets the reason and informs the successor."""
        if self.up.linked:
            self.node.emit(SendUpstream(Quit(QuitReason.LEFT, reason)), CloseUpstream())
        self.node.emit(CloseDownstream())
        self.node.end(outcome, reason)
        return self._take()

    def hold_up(self) -> None:
        """Record that this node waits for another one; the next heartbeat reports it to the predecessor."""
        self.node.held_up = True

    def waited(self, seconds: float) -> None:
        """Count seconds in which there was room for data, and none arrived."""
        self._waited += seconds

    def store_does(self, pace: StorePace, writing: float, now: float) -> list[Command]:
        """Handle the pace of the store, whose present write has lasted `writing` seconds.

        A node whose store accepts nothing leaves, unless it is the only one.
        """
        slow_seconds = self.node.phase.timings.slow
        if writing >= slow_seconds and not (self.down.tail and self.up.predecessor == 0):
            return self.leave(NodeOutcome.EXCLUDED, f"its store has accepted nothing for {slow_seconds:g} s")
        if (since := self.up.storing_since) is not None:
            pace = StorePace.SLOW if now >= since + slow_seconds else StorePace.BEHIND
        self.node.store = StorePace.ALONE if pace is StorePace.SLOW and self._another_is_better(since, now) else pace
        return []

    def _another_is_better(self, storing_since: float | None, now: float) -> bool:
        """Return whether a node behind keeps up, or stored long ago what this node has not."""
        better = self.down.better_since
        if better is None or storing_since is None:
            return better is not None
        return is_far_behind(storing_since, better, now, self.node.phase.timings.slow)

    def deadline(self) -> float:
        """Return the latest time for the next `tick`."""
        return _earliest(self.up.deadline(), self.down.deadline(), self._beat.due)

    def tick(self, now: float) -> list[Command]:
        """Return the commands that are due at `now`."""
        for due in (self.up.tick, self.down.tick, self._beat.tick):
            if not self.node.over:
                due(now)
        return self._take()

    def _take(self) -> list[Command]:
        commands, self.node.outbox = self.node.outbox, []
        return commands

    def _from_successor(self, message: Message, now: float) -> None:
        try:
            self.down.handle(message, now)
        except RemoteProtocolError as error:
            self.down.handle(SuccessorLost(f"broke the protocol: {error}"), now)

    def _from_predecessor(self, message: Message, now: float) -> None:
        try:
            self.up.handle(message, now)
            self._acknowledge()
        except RemoteProtocolError:
            self.up.handle(PredecessorLost(), now)

    def _from_source(self, event: FromSource, now: float) -> None:
        try:
            self.up.handle(event, now)
        except RemoteProtocolError as error:
            self.up.handle(FetchLost(str(error)), now)

    def _below_passed(self, now: float) -> None:
        self.up.handle(Passing(), now)

    def _send_done(self) -> None:
        self.node.emit(SendDownstream(Quit(QuitReason.DONE)))

    def _acknowledge(self) -> None:
        node = self.node
        if node.position - self._acknowledged >= _CREDIT_BYTES and self.up.linked:
            self._acknowledged = node.position
            node.emit(SendUpstream(self._alive()))

    def _greet(self) -> None:
        node = self.node
        node.starved = self._waited > _STARVED_SHARE * node.phase.timings.heartbeat
        self._waited = 0.0
        alive = self._alive()
        if self.up.linked:
            node.emit(SendUpstream(alive))
        if self.down.linked:
            node.emit(SendDownstream(alive))
        node.held_up = False
        node.notify(PhaseProgress(node.position))

    def _alive(self) -> PipelineHeartbeat:
        node = self.node
        return PipelineHeartbeat(node.position, node.held_up, node.starved, node.store)


class SourceCore:
    """The first node. `position` is how far the data can be read, and `skips` what of it is left out."""

    def __init__(self, phase: PipelinePhase, position: int, skips: Skips | None = None) -> None:
        self.node = NodeState(phase, position, skips)
        self.node.report_ready = self.node.stored = True
        self.down = Downstream(self.node, self._below_passed)
        self._beat = _HeartbeatTimer(self.node, self._greet)

    def handle(self, event: Event, now: float) -> list[Command]:
        """Handle this event, as `NodeCore.handle` does."""
        if self.node.over:
            return []
        if isinstance(event, FromSuccessor):
            try:
                self.down.handle(event.message, now)
            except RemoteProtocolError as error:
                self.down.handle(SuccessorLost(f"broke the protocol: {error}"), now)
        else:
            self.down.handle(event, now)
        return self._take()

    def readable(self, position: int, now: float) -> list[Command]:
        """Record that the data can be read up to `position`."""
        self.node.position = position
        self.down.settle(now)
        return self._take()

    def end_at(self, stop: int, final: bool, now: float) -> list[Command]:
        """End the phase at byte `stop`; `final`: also the data."""
        self.node.stop, self.node.final = stop, final
        self.down.settle(now)
        return self._take()

    def interrupt(self, reason: str, now: float) -> list[Command]:
        """Interrupt for the user: QUIT goes down the chain, and the report returns."""
        self.node.quit = Quit(QuitReason.INTERRUPTED, reason)
        self.down.settle(now)
        return self._take()

    def leave(self, outcome: NodeOutcome, reason: str) -> list[Command]:
        """End at once because of a local event; nothing waits for the report."""
        if self.down.linked:
            self.node.emit(
                SendDownstream(Quit(QuitReason.INTERRUPTED, reason)), SendDownstream(Report(dict(self.node.failed)))
            )
        self.node.emit(CloseDownstream())
        self.node.end(outcome, reason)
        return self._take()

    def deadline(self) -> float:
        """Return the latest time for the next `tick`."""
        return _earliest(self.down.deadline(), self._beat.due)

    def tick(self, now: float) -> list[Command]:
        """Return the commands that are due at `now`."""
        for due in (self.down.tick, self._beat.tick):
            if not self.node.over:
                due(now)
        return self._take()

    def _take(self) -> list[Command]:
        if self.down.alone and not self.node.over:
            self._end()
        commands, self.node.outbox = self.node.outbox, []
        return commands

    def _end(self) -> None:
        node = self.node
        node.notify(Reported(node.named_failures()))
        if len(node.failed) == len(node.phase.chain) - 1:
            node.end(NodeOutcome.FAILED, "no node of the chain is left")
        else:
            node.emit(SendDownstream(Quit(QuitReason.DONE)))
            if node.quit is None:
                node.notify(PhaseDrained(node.stop or 0))
            node.end_now(NodeOutcome.FAILED, "the report came before the end")

    def _below_passed(self, now: float) -> None:
        """Do nothing: `alone` shows it."""

    def _greet(self) -> None:
        if self.down.linked:
            self.node.emit(SendDownstream(PipelineHeartbeat(self.node.position, held_up=False)))
        self.node.notify(PhaseProgress(self.down.taken))


class _HeartbeatTimer:
    """Timer that calls `greet` at the start and then at every interval."""

    def __init__(self, node: NodeState, greet: Callable[[], None]) -> None:
        self.due = 0.0
        self._interval = node.phase.timings.heartbeat
        self._greet = greet

    def tick(self, now: float) -> None:
        if now >= self.due:
            self.due = now + self._interval
            self._greet()


def _earliest(*times: float | None) -> float:
    return min(time for time in times if time is not None)
