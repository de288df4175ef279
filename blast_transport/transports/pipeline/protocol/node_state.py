"""State that both halves of a node's core share, and the commands that they give."""

from __future__ import annotations

from blast_transport.store.blocks.store_pace import StorePace
from blast_transport.transports.pipeline.protocol.events import Command, Notify
from blast_transport.transports.pipeline.protocol.messages import Quit, QuitReason, short
from blast_transport.transports.pipeline.protocol.phase import (
    NodeLost,
    NodeOutcome,
    PhaseEnded,
    PipelineEvent,
    PipelinePhase,
)
from blast_transport.transports.pipeline.protocol.skips import Skips


class NodeState:
    """State of a node that belongs to both halves.

    `position`: all bytes before it are held. `stored_before`: the same of the store, which other transports fill too.
    `stop`: end of the phase, once known, and whether it is `final` for the data as well. `quit`: the phase ends before
    its end. `failed`: lost nodes by position. `report_ready`: they include the predecessor's report. `stored`: all data
    is stored, since `stored_at`. `held_up`: since the last heartbeat, this node has waited for another one. `starved`:
    it waits for data most of the time. `store`: pace of its store, and whether one behind is faster. `begun`: the
    source has begun, which it does when every participant has the phase; only then does it connect, and data flow.
    `skips`: ranges that are omitted, as far as known.
    """

    def __init__(self, phase: PipelinePhase, position: int, skips: Skips | None = None) -> None:
        self.phase = phase
        self.skips = skips or Skips()
        self.position = position
        self.stored_before = 0
        self.stop: int | None = None
        self.final = False
        self.quit: Quit | None = None
        self.failed: dict[int, str] = {}
        self.report_ready = False
        self.held_up = False
        self.starved = False
        self.store = StorePace.KEEPS_UP
        self.begun = phase.index == 0
        self.stored = False
        self.stored_at = 0.0
        self.over = False
        self.outbox: list[Command] = []

    @property
    def ended(self) -> bool:
        """Return whether all expected data is here."""
        return self.stop is not None and self.position >= self.stop

    @property
    def settled(self) -> bool:
        """Return whether this node no longer delays the report."""
        return self.report_ready and (self.quit is not None or (self.ended and self.stored))

    def emit(self, *commands: Command) -> None:
        """Queue commands for the shell."""
        self.outbox += commands

    def notify(self, event: PipelineEvent) -> None:
        """Queue an event for the session."""
        self.emit(Notify(event))

    def lose(self, place: int, reason: str) -> None:
        """Record the loss of this node."""
        self.failed.setdefault(place, short(reason))
        self.notify(NodeLost(self.phase.chain[place].name, reason))

    def learn(self, failed: dict[int, str]) -> None:
        """Add the losses that others report.

        This node's own entry for a node takes precedence, and no entry names itself.
        """
        for place, reason in failed.items():
            if 0 < place < len(self.phase.chain) and place != self.phase.index:
                self.failed.setdefault(place, reason)

    def named_failures(self) -> dict[str, str]:
        """Return `failed` by name, in the order of the chain."""
        return {self.phase.chain[place].name: self.failed[place] for place in sorted(self.failed)}

    def end(self, outcome: NodeOutcome, reason: str = "") -> None:
        """End this node's part. No effect the second time."""
        if not self.over:
            self.over = True
            self.notify(PhaseEnded(outcome, reason))

    def end_now(self, otherwise: NodeOutcome, reason: str) -> None:
        """End this node's part in its present state: with `otherwise`, unless the phase has ended or quit."""
        if self.quit is not None:
            data_lost = self.quit.reason is QuitReason.LOST
            self.end(NodeOutcome.FORGOTTEN if data_lost else NodeOutcome.QUIT, self.quit.text)
        elif self.ended and self.stored:
            self.end(NodeOutcome.COMPLETE)
        else:
            self.end(otherwise, reason)
