"""What a node of a pipeline decides: its two halves put together. No sockets, no files, no clock.

`NodeCore` is every node but the first, `SourceCore` the first. Both take events with the time and answer with commands
for their shell. The halves, each a table of states and events: `upstream`, `downstream`.
"""

from __future__ import annotations

from collections.abc import Callable

from blast_transport.base.errors import RemoteProtocolError
from blast_transport.store.store_pace import StorePace
from blast_transport.transports.pipeline.protocol.downstream import Downstream
from blast_transport.transports.pipeline.protocol.events import (
    Arrived,
    CloseDown,
    CloseUp,
    Command,
    Event,
    FetchLost,
    FromPredecessor,
    FromSource,
    FromSuccessor,
    Passing,
    PredecessorLost,
    SendDown,
    SendUp,
    Sent,
    Started,
    SuccessorLost,
    Torn,
    Unheld,
)
from blast_transport.transports.pipeline.protocol.messages import Alive, Message, Quit, Report, Why
from blast_transport.transports.pipeline.protocol.node_state import NodeState
from blast_transport.transports.pipeline.protocol.pace import is_far_behind
from blast_transport.transports.pipeline.protocol.phase import Drained, Outcome, PipelinePhase, Progress, Reported
from blast_transport.transports.pipeline.protocol.skips import Skips
from blast_transport.transports.pipeline.protocol.upstream import Upstream

_CREDIT_BYTES = 1 << 20
"""Our predecessor hears after so many bytes that they came, for it may have to wait for that."""

_STARVED_SHARE = 0.5
"""Of the time between two signs of life: whoever waits for data for longer than that would take more."""

_DOWN_EVENTS = (Started, SuccessorLost, Sent, Unheld, Torn)


class NodeCore:
    """A node that holds all bytes before `position` at the start; `skips` is filled with what it passes over."""

    def __init__(self, phase: PipelinePhase, position: int, skips: Skips | None = None) -> None:
        self.node = NodeState(phase, position, skips)
        self.down = Downstream(self.node, self._below_passed)
        self.up = Upstream(self.node, self.down.settle, self._send_done)
        self._beat = _Heartbeat(self.node, self._greet)
        self._acknowledged = position
        self._waited = 0.0

    def handle(self, event: Event, now: float) -> list[Command]:
        """What to do about this event. Raises LocalProtocolError for one that cannot be now.

        A neighbor that says what it may not say is treated like one that is lost.
        """
        if self.node.over:
            return []
        match event:
            case FromSuccessor(message):
                self._from_successor(message, now)
                if self.down.slow_link:
                    return self.leave(Outcome.EXCLUDED, self.down.slow_link)
            case FromPredecessor(message):
                self._from_predecessor(message, now)
            case FromSource():
                self._from_source(event, now)
            case Started():
                self.up.start(now)
                self.down.handle(event, now)
            case _ if isinstance(event, _DOWN_EVENTS):
                self.down.handle(event, now)
            case Arrived():
                self.up.handle(event, now)
                self._acknowledge()
            case _:
                self.up.handle(event, now)
        return self._take()

    def leave(self, outcome: Outcome, reason: str) -> list[Command]:
        """Our own side ends it: our predecessor hears why, our successor will hear from it."""
        if self.up.linked:
            self.node.say(SendUp(Quit(Why.LEFT, reason)), CloseUp())
        self.node.say(CloseDown())
        self.node.end(outcome, reason)
        return self._take()

    def hold_up(self) -> None:
        """What we wait for is not our doing; our predecessor hears so with the next sign of life."""
        self.node.held_up = True

    def waited(self, seconds: float) -> None:
        """For so long there was room for data, and none had come."""
        self._waited += seconds

    def store_does(self, pace: StorePace, writing: float, now: float) -> list[Command]:
        """How our store does, which has been at one write for so many seconds.

        Who takes nothing at all leaves, unless it is the only one.
        """
        patience = self.node.phase.timings.slow
        if writing >= patience and not (self.down.tail and self.up.predecessor == 0):
            return self.leave(Outcome.EXCLUDED, f"its store has taken nothing for {patience:g} s")
        if (since := self.up.storing_since) is not None:
            pace = StorePace.SLOW if now >= since + patience else StorePace.BEHIND
        self.node.store = StorePace.ALONE if pace is StorePace.SLOW and self._another_is_better(since, now) else pace
        return []

    def _another_is_better(self, storing_since: float | None, now: float) -> bool:
        """Somebody behind us keeps up, or has long stored what we have not."""
        better = self.down.better_since
        if better is None or storing_since is None:
            return better is not None
        return is_far_behind(storing_since, better, now, self.node.phase.timings.slow)

    def deadline(self) -> float:
        """When `tick` has something to do at the latest."""
        return _earliest(self.up.deadline(), self.down.deadline(), self._beat.due)

    def tick(self, now: float) -> list[Command]:
        """What is due at `now`."""
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
        self.node.say(SendDown(Quit(Why.DONE)))

    def _acknowledge(self) -> None:
        node = self.node
        if node.position - self._acknowledged >= _CREDIT_BYTES and self.up.linked:
            self._acknowledged = node.position
            node.say(SendUp(self._alive()))

    def _greet(self) -> None:
        node = self.node
        node.starved = self._waited > _STARVED_SHARE * node.phase.timings.heartbeat
        self._waited = 0.0
        alive = self._alive()
        if self.up.linked:
            node.say(SendUp(alive))
        if self.down.linked:
            node.say(SendDown(alive))
        node.held_up = False
        node.tell(Progress(node.position))

    def _alive(self) -> Alive:
        node = self.node
        return Alive(node.position, node.held_up, node.starved, node.store)


class SourceCore:
    """The first node. `position` is how far the data can be read, and `skips` what of it is left out."""

    def __init__(self, phase: PipelinePhase, position: int, skips: Skips | None = None) -> None:
        self.node = NodeState(phase, position, skips)
        self.node.report_ready = self.node.stored = True
        self.down = Downstream(self.node, self._below_passed)
        self._beat = _Heartbeat(self.node, self._greet)

    def handle(self, event: Event, now: float) -> list[Command]:
        """What to do about this event, as `NodeCore.handle`."""
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
        """The data can be read up to `position` by now."""
        self.node.position = position
        self.down.settle(now)
        return self._take()

    def end_at(self, stop: int, final: bool, now: float) -> list[Command]:
        """The phase ends at byte `stop`; `final`: so does the data."""
        self.node.stop, self.node.final = stop, final
        self.down.settle(now)
        return self._take()

    def interrupt(self, reason: str, now: float) -> list[Command]:
        """The user ends it: QUIT goes down the chain, and the report comes back."""
        self.node.quit = Quit(Why.INTERRUPTED, reason)
        self.down.settle(now)
        return self._take()

    def leave(self, outcome: Outcome, reason: str) -> list[Command]:
        """Our own side ends it now; nobody waits for the report."""
        if self.down.linked:
            self.node.say(SendDown(Quit(Why.INTERRUPTED, reason)), SendDown(Report(dict(self.node.failed))))
        self.node.say(CloseDown())
        self.node.end(outcome, reason)
        return self._take()

    def deadline(self) -> float:
        """When `tick` has something to do at the latest."""
        return _earliest(self.down.deadline(), self._beat.due)

    def tick(self, now: float) -> list[Command]:
        """What is due at `now`."""
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
        node.tell(Reported(node.named_failures()))
        if len(node.failed) == len(node.phase.chain) - 1:
            node.end(Outcome.FAILED, "no node of the chain is left")
        else:
            node.say(SendDown(Quit(Why.DONE)))
            if node.quit is None:
                node.tell(Drained(node.stop or 0))
            node.end_as_it_stands(Outcome.FAILED, "the report came before the end")

    def _below_passed(self, now: float) -> None:
        """`alone` says so."""

    def _greet(self) -> None:
        if self.down.linked:
            self.node.say(SendDown(Alive(self.node.position, held_up=False)))
        self.node.tell(Progress(self.down.taken))


class _Heartbeat:
    """Calls `greet` at the start and then every so often."""

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
