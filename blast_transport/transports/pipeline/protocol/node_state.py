"""What both sides of a node's core know of it, and the commands that they give."""

from __future__ import annotations

from blast_transport.store.store_pace import StorePace
from blast_transport.transports.pipeline.protocol.events import Command, Tell
from blast_transport.transports.pipeline.protocol.messages import Quit, Why, short
from blast_transport.transports.pipeline.protocol.phase import Ended, Lost, Outcome, PipelineEvent, PipelinePhase
from blast_transport.transports.pipeline.protocol.skips import Skips


class NodeState:
    """The state of a node that is neither its upstream nor its downstream side's alone.

    `position`: all bytes before it are held. `stored_before`: the same of our store, which others fill too.
    `stop`: where the phase ends, once that is known, and whether that is
    `final` for the data as well. `quit`: that the end comes before the end. `failed`: by place, the nodes lost.
    `report_ready`: our predecessor's report is among them. `stored`: what came is stored, to the end, since
    `stored_at`. `held_up`: we wait, since the last sign of life, for something that is not our doing. `starved`: we
    wait for data most of the time. `store`: how our own store does, and whether one behind us does better. `begun`:
    the source has begun, which it does when everybody who is to take part has heard of the phase; only then does it
    connect, and does data go from one to the next. `skips`: what is left out of the data, as far as that is known.
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
        """Everything that was to come is here."""
        return self.stop is not None and self.position >= self.stop

    @property
    def settled(self) -> bool:
        """Nothing of our own keeps the report from passing."""
        return self.report_ready and (self.quit is not None or (self.ended and self.stored))

    def say(self, *commands: Command) -> None:
        """Add commands for the shell."""
        self.outbox += commands

    def tell(self, event: PipelineEvent) -> None:
        """Add an event for the session."""
        self.say(Tell(event))

    def lose(self, place: int, reason: str) -> None:
        """This node is lost to the chain."""
        self.failed.setdefault(place, short(reason))
        self.tell(Lost(self.phase.chain[place].name, reason))

    def learn(self, failed: dict[int, str]) -> None:
        """What others lost. Our own word on a node stands, and nobody reports us."""
        for place, reason in failed.items():
            if 0 < place < len(self.phase.chain) and place != self.phase.index:
                self.failed.setdefault(place, reason)

    def named_failures(self) -> dict[str, str]:
        """`failed` by name, in the order of the chain."""
        return {self.phase.chain[place].name: self.failed[place] for place in sorted(self.failed)}

    def end(self, outcome: Outcome, reason: str = "") -> None:
        """Our part is over. No effect the second time."""
        if not self.over:
            self.over = True
            self.tell(Ended(outcome, reason))

    def end_as_it_stands(self, otherwise: Outcome, reason: str) -> None:
        """Our part is over as far as it came: `otherwise`, if that is neither to the end nor to a quit."""
        if self.quit is not None:
            gone = self.quit.why is Why.GONE
            self.end(Outcome.FORGOTTEN if gone else Outcome.QUIT, self.quit.text)
        elif self.ended and self.stored:
            self.end(Outcome.COMPLETE)
        else:
            self.end(otherwise, reason)
