"""One connection of one ToR: its running and waiting dialogues, and its events for the core.

| state     | meaning                                 | next state                                                  |
|-----------|-----------------------------------------|-------------------------------------------------------------|
| standing  | slave; this controller is a standby     | becomes the leader → claiming                               |
| claiming  | only the role request was sent          | master → preparing                                          |
| preparing | rules are read and repaired             | done → up: DeviceConnected with its forwards, PortChanged   |
| up        | commands and readings are executed      |                                                             |
| ended     | closed or lost                          |                                                             |

Any state ends on a refusal that leaves the ToR unusable, on a late answer of the preparation or of a reading, when
another controller takes the ToR over, and when the connection is lost.

At most `WINDOW` dialogues with a ToR run at a time; further ones wait here, so that the framework's own send queue
(16 entries) never blocks the caller.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial

from blast_controller.core.model.commands import ForwardingChange, SetForwarding
from blast_controller.core.model.events import (
    DeviceConnected,
    DeviceDisconnected,
    PortChanged,
    ProbeReceived,
    StepFailed,
    TableObserved,
)
from blast_controller.core.model.identifiers import DatapathId
from blast_controller.openflow.audit import audit
from blast_controller.openflow.dialogues import (
    FENCED,
    Changing,
    Claiming,
    Dialogue,
    Reaction,
    ReadingDialogue,
    StandbyDialogue,
    StepRules,
)
from blast_controller.openflow.rules import InvalidForwardError, Rule, RuleSettings, additions, merged, removals
from blast_controller.openflow.vocabulary import (
    Answer,
    Connected,
    Effect,
    ErrorReceived,
    Event,
    Fence,
    HangUp,
    MalformedMessage,
    MasterLost,
    MasterTerms,
    News,
    PortReported,
    PortState,
    ProbeArrived,
    ProbeRequested,
    StepKey,
    Transmit,
    TransmitProbe,
)
from blast_controller.serving.tls import CertificateNames

WINDOW = 8
ANSWER_TIMEOUT = 10.0
"""Seconds for the answer to a role request, and for a reading with its repairs."""


@dataclass(frozen=True, slots=True)
class Tor:
    """The configuration of one ToR."""

    datapath: DatapathId
    optical_ports: Sequence[int]
    guards: Sequence[Rule]
    certificate: str | None = None
    """The name that the ToR's certificate must have; None: no check."""

    def is_proved_by(self, names: CertificateNames) -> bool:
        """Return true if a connection whose certificate has these names may be this ToR."""
        return self.certificate is None or self.certificate.lower() in {name.lower() for _, name in names}


class _SessionState(Enum):
    STANDING = "standby"
    CLAIMING = "claiming"
    PREPARING = "preparing"
    UP = "up"
    ENDED = "ended"


class TorSession:
    """Turns messages of its ToR and commands of the core into effects."""

    def __init__(self, connected: Connected, tor: Tor, numbers: Iterator[int]) -> None:
        self.handle = connected.session
        self.datapath = tor.datapath
        self._tor = tor
        self._terms: MasterTerms
        self._numbers = numbers
        self._state = _SessionState.STANDING
        self._under_way: list[Dialogue] = []
        self._waiting: deque[Dialogue] = deque()
        self.deadline: float | None = None
        """The earliest deadline of a dialogue, or that of an ended one; None if none ends by time."""
        absent = {port: PortState(port, False, "the ToR has no such port") for port in tor.optical_ports}
        present = {state.port: state for state in connected.ports if state.port in absent}
        self._ports = absent | present

    @property
    def up(self) -> bool:
        """Return true if commands are accepted."""
        return self._state is _SessionState.UP

    @property
    def ended(self) -> bool:
        """Return true if the session is over."""
        return self._state is _SessionState.ENDED

    # ------------------------------------------------------------------------------------------ what the core wants

    def become_standby(self, generation: int, now: float) -> list[Effect]:
        """Request the slave role on a new connection, for the generation of the leader."""
        return self._ask(StandbyDialogue(self._numbers, now + ANSWER_TIMEOUT, generation))

    def lead(self, tor: Tor, terms: MasterTerms, now: float) -> list[Effect]:
        """Take the ToR over on these terms: the connection is new, or belonged to a standby."""
        self._tor, self._terms, self._state = tor, terms, _SessionState.CLAIMING
        return self._ask(Claiming(self._numbers, now + ANSWER_TIMEOUT, terms.generation))

    def command(self, change: SetForwarding, asked: float) -> list[Effect]:
        """Carry out a change; a step that no rule can express fails at once."""
        steps: dict[StepKey, StepRules] = {}
        failures: list[Effect] = []
        for step, part in merged(change.changes).items():
            try:
                steps[step] = _step_rules(self._terms.settings, part)
            except InvalidForwardError as error:
                failures.append(StepFailed(self.datapath, *step, reason=str(error)))
        if not steps:
            return failures
        deadline = asked + self._terms.step_timeout
        return failures + self._ask(Changing(self._numbers, deadline, self.datapath, steps, asked))

    def read(self, mend: bool, now: float) -> list[Effect]:
        """Read the rules, after everything that was asked before."""
        judge = partial(audit, self._terms.settings, self._tor.guards)
        return self._ask(ReadingDialogue(self._numbers, now + ANSWER_TIMEOUT, judge, mend))

    def challenge(self) -> list[Effect]:
        """Request an answer from the ToR, unless one is outstanding; any answer proves that it is alive."""
        if self._state in (_SessionState.STANDING, _SessionState.CLAIMING):
            return []
        return [Transmit(self.handle, ((next(self._numbers), Fence()),))]

    def probe(self, probe: ProbeRequested) -> list[Effect]:
        """Send a probe frame; nothing answers it."""
        return [Transmit(self.handle, ((next(self._numbers), TransmitProbe(probe.port, probe.payload)),))]

    # --------------------------------------------------------------------------------------------- messages of the ToR

    def answered(self, answer: Answer, now: float) -> list[Effect]:
        """Process an answer; ignore one that is not outstanding."""
        for dialogue in self._under_way:
            if dialogue.concerns(answer.xid):
                return self._react(dialogue.receive(answer, now)) + self._settle(dialogue, now)
        # A probe's transaction id is not kept; that it is no longer ours to send still matters.
        return self.hang_up(FENCED) if isinstance(answer, ErrorReceived) and answer.fenced else []

    def handle_news(self, news: News) -> list[Effect]:
        """Process an unsolicited message."""
        match news:
            case MasterLost():
                # To a standby it is no news.
                return [] if self._state is _SessionState.STANDING else self.hang_up(FENCED)
            case MalformedMessage(_, reason):
                return self.hang_up(f"protocol violation: {reason}")
            case PortReported(_, state):
                return self._port_reported(state)
            case ProbeArrived(_, port, payload):
                return [ProbeReceived(self.datapath, port, payload)] if self.up and port in self._ports else []

    def expire(self, now: float) -> list[Effect]:
        """Fail everything that is late, or end the connection."""
        late = [d for d in self._dialogues() if d.deadline is not None and d.deadline <= now]
        self._waiting = deque(d for d in self._waiting if d not in late)
        effects: list[Effect] = []
        for dialogue in late:
            effects += self._react(dialogue.expire())
        effects += [] if self.ended else self._refill()
        self.deadline = min((d.deadline for d in self._dialogues() if d.deadline is not None), default=None)
        return effects

    # ------------------------------------------------------------------------------------------------------- the end

    def end(self, reason: str, notify: bool = False) -> list[Effect]:
        """Handle the end of the connection.

        Return DeviceDisconnected if the core knew it or must be notified, then the events of the unanswered steps.
        """
        down: list[Effect] = [DeviceDisconnected(self.datapath, reason)] if self.up or notify else []
        self._state = _SessionState.ENDED
        sentence = f"ToR {self.datapath:016x} disconnected: {reason}"
        return down + [event for dialogue in self._dialogues() for event in dialogue.abandon(sentence)]

    def hang_up(self, reason: str) -> list[Effect]:
        """Close the connection and notify the core of the reason, even if the ToR was never up."""
        if self.ended:
            return []
        return [*self.end(reason, notify=True), HangUp(self.handle, f"ToR {self.datapath:016x}: {reason}")]

    # --------------------------------------------------------------------------------------------------------- inside

    def _dialogues(self) -> list[Dialogue]:
        return [*self._under_way, *self._waiting]

    def _ask(self, dialogue: Dialogue) -> list[Effect]:
        self._waiting.append(dialogue)
        if dialogue.deadline is not None:
            self.deadline = dialogue.deadline if self.deadline is None else min(self.deadline, dialogue.deadline)
        return self._refill()

    def _refill(self) -> list[Effect]:
        effects: list[Effect] = []
        while self._waiting and len(self._under_way) < WINDOW and not any(d.exclusive for d in self._under_way):
            dialogue = self._waiting.popleft()
            self._under_way.append(dialogue)
            effects.append(Transmit(self.handle, dialogue.open()))
        return effects

    def _react(self, reaction: Reaction) -> list[Effect]:
        effects: list[Effect] = list(reaction.events)
        if reaction.send:
            effects.append(Transmit(self.handle, reaction.send))
        if reaction.over:
            effects += self.hang_up(reaction.over)
        return effects

    def _settle(self, dialogue: Dialogue, now: float) -> list[Effect]:
        if self.ended:
            return []
        effects: list[Effect] = []
        if dialogue.done:
            self._under_way.remove(dialogue)
            effects += self._concluded(dialogue, now)
        return effects + self._refill()

    def _concluded(self, dialogue: Dialogue, now: float) -> list[Effect]:
        match dialogue:
            case Changing():
                return []
            case Claiming():
                self._state = _SessionState.PREPARING
                return self.read(mend=True, now=now)
            case ReadingDialogue() if not self.up:
                self._state = _SessionState.UP
                return [DeviceConnected(self.datapath, rules=dialogue.findings.forwards), *self._all_ports()]
            case ReadingDialogue():
                return [TableObserved(self.datapath, dialogue.findings.forwards, dialogue.foreign)]
            case _:
                return []

    def _port_reported(self, state: PortState) -> list[Effect]:
        known = self._ports.get(state.port)
        if known is None or known == state:
            return []
        self._ports[state.port] = state
        return list(_port_events(self.datapath, [state])) if self.up else []

    def _all_ports(self) -> list[Event]:
        return list(_port_events(self.datapath, self._ports.values()))


def _step_rules(settings: RuleSettings, change: ForwardingChange) -> StepRules:
    added, removed = tuple(additions(settings, change)), tuple(removals(settings, change))
    return StepRules(added, removed) if added else StepRules(removed)


def _port_events(datapath: DatapathId, states: Iterable[PortState]) -> Iterator[Event]:
    for state in states:
        yield PortChanged(datapath, state.port, state.up, state.reason)
