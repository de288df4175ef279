"""The receiving half of a node's core, for its predecessor. No sockets, no clock.

Theory of operation. A node that joins as the predecessor gets GET(position), on every connection: the previous one may
have died before it sent anything. Its data follows, then END or QUIT and the REPORT; when everything behind is done,
PASSED returns, and the node lingers until the source's DONE arrives, for a predecessor whose own one died. A node
further up that joins has skipped the predecessor, which gets that reason; a node that this chain has skipped is
refused. Data that the predecessor no longer holds is fetched from the source; if the source does not hold it either,
this node quits with all behind it, unless its store holds the data by now, from an earlier transport.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto

from blast_transport.base.errors import LocalProtocolError, RemoteProtocolError
from blast_transport.transports.pipeline.protocol.events import (
    Admit,
    BytesArrived,
    CloseFetch,
    CloseUpstream,
    Complete,
    DataStored,
    Fetch,
    FetchLost,
    FromSource,
    Joined,
    Passing,
    PredecessorLost,
    Refuse,
    SendUpstream,
    Skip,
)
from blast_transport.transports.pipeline.protocol.messages import (
    End,
    Forget,
    Get,
    Held,
    Passed,
    PipelineHeartbeat,
    Quit,
    QuitReason,
    Report,
)
from blast_transport.transports.pipeline.protocol.node_state import NodeState
from blast_transport.transports.pipeline.protocol.phase import NodeOutcome, PhaseDrained

_SOURCE = 0


class UpstreamState(Enum):
    """State of the connection from the predecessor."""

    WAITING = auto()
    RECEIVING = auto()
    FETCHING = auto()
    ENDED = auto()
    REPORTED = auto()
    LINGERING = auto()
    CLOSED = auto()


class Upstream:
    """`settle` is called when something has come that the other half may wait for; `done` sends DONE down."""

    def __init__(self, node: NodeState, settle: Callable[[float], None], done: Callable[[], None]) -> None:
        self.state = UpstreamState.WAITING
        self.predecessor: int | None = None
        self._node = node
        self._timings = node.phase.timings
        self._settle = settle
        self._done = done
        self._last_received = 0.0
        self._passed_at: float | None = None
        self._ended_at = 0.0
        self._fetch_stop = 0
        self._fetch_received_at = 0.0

    @property
    def linked(self) -> bool:
        """Return whether a predecessor is connected."""
        return self.state not in (UpstreamState.WAITING, UpstreamState.CLOSED)

    @property
    def receiving(self) -> bool:
        """Return whether data may arrive from the predecessor."""
        return self.state is UpstreamState.RECEIVING

    @property
    def fetching(self) -> bool:
        """Return whether data may arrive from the source."""
        return self.state is UpstreamState.FETCHING

    @property
    def storing_since(self) -> float | None:
        """Return the time since which all data is here but not stored; None if it is not so."""
        return self._ended_at if self._node.ended and not self._node.stored else None

    def start(self, now: float) -> None:
        """Start the node."""
        self._last_received = now

    def handle(self, event: object, now: float) -> None:
        """Handle an event or a message of the predecessor.

        Raise RemoteProtocolError if the predecessor or source must not send this now, LocalProtocolError if the shell
        must not.
        """
        action = _TABLE.get((self.state, type(event)))
        if action is None:
            error = LocalProtocolError if isinstance(event, _LOCAL) else RemoteProtocolError
            raise error(f"{type(event).__name__} is not possible in state {self.state.name}")
        if not isinstance(event, PredecessorLost | DataStored | Passing):
            self._last_received = now
        self._node.begun = self._node.begun or isinstance(event, _BEGUN)
        action(self, event, now)

    def deadline(self) -> float | None:
        """Return the latest time for the next `tick`; None if none is due."""
        if self.state is UpstreamState.CLOSED:
            return None
        if self._passed_at is not None and self._node.settled:
            return self._passed_at + self._timings.linger
        orphaned = self._last_received + self._timings.orphan
        return (
            min(orphaned, self._fetch_received_at + self._timings.fetch)
            if self.state is UpstreamState.FETCHING
            else orphaned
        )

    def tick(self, now: float) -> None:
        """Do what is due at `now`."""
        limit = self.deadline()
        if limit is None or now < limit:
            return
        if self.state is UpstreamState.FETCHING:
            self._lose_data(f"cannot fetch bytes from {self._node.position} on: the source does not answer", now)
        else:
            orphaned = f"no message from a predecessor for {self._timings.orphan:g} s"
            self._node.end_now(NodeOutcome.FAILED, orphaned)

    def _join(self, joined: Joined, now: float) -> None:
        if self.predecessor is not None and joined.place > self.predecessor:
            reason = f"the chain goes on without {self._name(joined.place)}"
            self._node.emit(Refuse(Quit(QuitReason.EXCLUDED, reason)))
            return
        skipped = self.predecessor is not None and joined.place < self.predecessor
        last_message = Quit(QuitReason.EXCLUDED, f"{self._name(joined.place)} took its place") if skipped else None
        if self.state is UpstreamState.FETCHING:
            self._node.emit(CloseFetch())
        self._node.emit(Admit(last_message), SendUpstream(Get(self._node.position)))
        self.predecessor, self.state = joined.place, UpstreamState.RECEIVING
        self._node.begun = self._node.begun or joined.place == _SOURCE

    def _too_late(self, joined: Joined, now: float) -> None:
        assert self._node.quit is not None
        self._node.emit(Refuse(self._node.quit))

    def _name(self, place: int) -> str:
        return self._node.phase.chain[place].name

    def _lost(self, lost: PredecessorLost, now: float) -> None:
        if self.state is UpstreamState.FETCHING:
            self._node.emit(CloseFetch())
        self._node.emit(CloseUpstream())
        self.state = UpstreamState.WAITING

    def _arrived(self, arrived: BytesArrived, now: float) -> None:
        self._node.position = arrived.position
        self._fetch_received_at = now
        if self.state is UpstreamState.FETCHING and arrived.position >= self._fetch_stop:
            self._node.emit(CloseFetch(), SendUpstream(Get(arrived.position)))
            self.state = UpstreamState.RECEIVING
        self._settle(now)

    def _held(self, held: Held, now: float) -> None:
        """Skip the held range, which the shell has checked."""
        node = self._node
        if held.stop <= node.position:
            raise RemoteProtocolError(f"HELD up to byte {held.stop}, but {node.position} was reached")
        node.skips.add(node.position, held.stop)
        node.position = held.stop
        node.emit(Skip(held.stop))
        self._settle(now)

    def _end(self, end: End, now: float) -> None:
        node = self._node
        if end.stop > node.position:
            raise RemoteProtocolError(f"END at byte {end.stop}, but the data ended at {node.position}")
        if node.stop is None:
            node.stop, node.final = end.stop, end.final
            self._ended_at = now
            node.emit(Complete(end.stop, end.final))
            node.notify(PhaseDrained(end.stop))
        self.state = UpstreamState.ENDED

    def _quit(self, quit_: Quit, now: float) -> None:
        if quit_.reason is QuitReason.EXCLUDED:
            self._node.end(NodeOutcome.EXCLUDED, quit_.text)
        elif quit_.reason is QuitReason.INTERRUPTED:
            self._node.quit, self.state = quit_, UpstreamState.ENDED
        elif quit_.reason is QuitReason.LOST:
            self._give_up(quit_.text, now)
        else:
            raise RemoteProtocolError(f"QUIT {quit_.reason.name} from a predecessor")

    def _late_quit(self, quit_: Quit, now: float) -> None:
        """Accept a late exclusion: a node that is skipped after its work was done has completed it."""
        if quit_.reason is not QuitReason.EXCLUDED:
            raise RemoteProtocolError(f"QUIT {quit_.reason.name} after the end")
        self._node.end_now(NodeOutcome.EXCLUDED, quit_.text)

    def _dismissed(self, quit_: Quit, now: float) -> None:
        if quit_.reason is not QuitReason.DONE:
            self._late_quit(quit_, now)
            return
        self._done()
        self._node.end_now(NodeOutcome.FAILED, "dismissed before the end")

    def _report(self, report: Report, now: float) -> None:
        self._node.learn(report.failed)
        self._node.report_ready = True
        self.state = UpstreamState.REPORTED
        self._pass_up()
        self._settle(now)

    def _stored(self, event: DataStored, now: float) -> None:
        self._node.stored, self._node.stored_at = True, now
        self._pass_up()
        self._settle(now)

    def _passing(self, event: Passing, now: float) -> None:
        self._passed_at = now
        self._pass_up()

    def _pass_up(self) -> None:
        """Pass the report if all nodes behind, and this one, are done."""
        if self.state is UpstreamState.REPORTED and self._passed_at is not None and self._node.settled:
            self._node.emit(SendUpstream(Passed(dict(self._node.failed))))
            self.state = UpstreamState.LINGERING

    def _forget(self, forget: Forget, now: float) -> None:
        position = self._node.position
        if forget.first_held <= position:
            raise RemoteProtocolError(f"FORGET up to byte {forget.first_held}, but {position} was asked for")
        if forget.first_held <= self._node.stored_before:
            self._skip(now)
            return
        if self.predecessor == _SOURCE or self._node.phase.chain[_SOURCE].port == 0:
            self._lose_data(f"bytes from {position} to {forget.first_held} are gone for good", now)
            return
        self.state, self._fetch_stop, self._fetch_received_at = UpstreamState.FETCHING, forget.first_held, now
        self._node.emit(Fetch(position, forget.first_held))

    def _from_source(self, event: FromSource, now: float) -> None:
        match event.message:
            case Forget(first_held) if first_held <= self._node.stored_before:
                self._node.emit(CloseFetch())
                self._skip(now)
            case Forget():
                self._lose_data(f"bytes from {self._node.position} on are gone for good", now)
            case PipelineHeartbeat():
                pass
            case _:
                raise RemoteProtocolError(f"{type(event.message).__name__} from the source that was asked for bytes")

    def _skip(self, now: float) -> None:
        """Continue behind the data that other transports delivered: a source drops data that every receiver holds."""
        node = self._node
        node.position = node.stored_before
        self.state = UpstreamState.RECEIVING
        node.emit(Skip(node.position), SendUpstream(Get(node.position)))
        self._settle(now)

    def _fetch_lost(self, lost: FetchLost, now: float) -> None:
        self._lose_data(f"bytes from {self._node.position} on cannot be fetched: {lost.reason}", now)

    def _lose_data(self, reason: str, now: float) -> None:
        self._node.emit(SendUpstream(Quit(QuitReason.LOST, reason)))
        self._give_up(reason, now)

    def _give_up(self, reason: str, now: float) -> None:
        if self.state is UpstreamState.FETCHING:
            self._node.emit(CloseFetch())
        self._node.emit(CloseUpstream())
        self._node.quit = Quit(QuitReason.LOST, reason)
        self.state = UpstreamState.CLOSED
        self._settle(now)
        if self._passed_at is not None:
            # All nodes behind are done: no other event would end this node.
            self._end_alone(Passing(), now)

    def _end_alone(self, event: Passing, now: float) -> None:
        self._node.end_now(NodeOutcome.FORGOTTEN, "")

    def _alive(self, alive: PipelineHeartbeat, now: float) -> None:
        """Accept a heartbeat, which has no data."""


_BEGUN = (BytesArrived, Held, End, Report, Forget)
"""Messages that a predecessor sends only after the source has begun."""
_LOCAL = (Joined, PredecessorLost, BytesArrived, FetchLost, DataStored, Passing)
_Action = Callable[..., None]


def _everywhere(event: type, action: _Action, *but: UpstreamState) -> dict[tuple[UpstreamState, type], _Action]:
    return {(state, event): action for state in UpstreamState if state not in (UpstreamState.CLOSED, *but)}


_TABLE: dict[tuple[UpstreamState, type], _Action] = {
    **_everywhere(Joined, Upstream._join),
    **_everywhere(PredecessorLost, Upstream._lost, UpstreamState.WAITING),
    **_everywhere(PipelineHeartbeat, Upstream._alive, UpstreamState.WAITING),
    **_everywhere(DataStored, Upstream._stored),
    **_everywhere(Passing, Upstream._passing),
    (UpstreamState.RECEIVING, BytesArrived): Upstream._arrived,
    (UpstreamState.RECEIVING, Held): Upstream._held,
    (UpstreamState.RECEIVING, End): Upstream._end,
    (UpstreamState.RECEIVING, Quit): Upstream._quit,
    (UpstreamState.RECEIVING, Forget): Upstream._forget,
    (UpstreamState.FETCHING, BytesArrived): Upstream._arrived,
    (UpstreamState.FETCHING, Quit): Upstream._quit,
    (UpstreamState.FETCHING, FromSource): Upstream._from_source,
    (UpstreamState.FETCHING, FetchLost): Upstream._fetch_lost,
    (UpstreamState.ENDED, Report): Upstream._report,
    (UpstreamState.ENDED, Quit): Upstream._late_quit,
    (UpstreamState.REPORTED, Quit): Upstream._late_quit,
    (UpstreamState.LINGERING, Quit): Upstream._dismissed,
    (UpstreamState.CLOSED, Joined): Upstream._too_late,
    (UpstreamState.CLOSED, DataStored): Upstream._stored,
    (UpstreamState.CLOSED, Passing): Upstream._end_alone,
}
