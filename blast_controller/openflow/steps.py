"""Who is connected, and which ToR an input or an answer is about: the sans-IO core of this part.

Theory of operation
-------------------
While another controller leads, a ToR that connects is asked to make us its slave, and nothing else is said to it; when
we come to lead, all that are connected become ours at once.

A ToR is made ours before anything else: its role request carries our **generation**, and a ToR that knows a controller
of a later one refuses, so a controller that was replaced writes nothing. Then its rules are read and what is right is
left alone, whoever wrote it and when, so that neither a restart of the controller nor a short interruption of the
control network costs a packet. Only then is it up, and the core hears which forwards it holds.

**Who is a ToR.** Where ToRs show certificates, each proves one datapath: the name in it must be the one configured. A
second connection of a ToR that is connected does not simply win, for then whoever may connect could take any ToR over:
it waits while the first one is challenged. An answer within `CHALLENGE` seconds, and the second one is turned away;
none, and it was the ToR itself, back before its old connection was seen to be dead. A third one is turned away at once.

`session.py` holds the states of a connection, `dialogues.py` what is said on it, `audit.py` what is right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Network

from blast_controller.core.model.events import DeviceDown, DeviceUp, StepFailed
from blast_controller.core.model.identifiers import DatapathId
from blast_controller.openflow.dialogues import transaction_ids
from blast_controller.openflow.rules import Rule, guards, merged
from blast_controller.openflow.session import Session, Tor
from blast_controller.openflow.vocabulary import (
    Command,
    Connected,
    Demoted,
    DriverInput,
    Effect,
    Follow,
    HandshakeFailed,
    Input,
    Lead,
    Lost,
    MalformedMessage,
    PortReported,
    Probe,
    ProbeArrived,
    Read,
    RejectCall,
    Terms,
)

CHALLENGE = 2.0
"""Seconds for a sign of life on the first connection of a ToR while a second one waits."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A second connection of a ToR, until when the first one has time to answer."""

    session: Session
    until: float


class Steps:
    """Turns inputs into effects. Times are seconds of any monotonic clock.

    Parameters
    ----------
    terms : what holds for every ToR; None while another controller leads, until `Lead` comes.
    optical_ports : the optical ports of each known datapath; others are never written to.
    group_network : the range of group addresses, e.g. 239.77.0.0/16.
    certificates : the name that each ToR's certificate must bear; those that are not in it need none.
    """

    def __init__(
        self,
        terms: Terms | None,
        optical_ports: Mapping[DatapathId, Sequence[int]],
        group_network: IPv4Network,
        certificates: Mapping[DatapathId, str] | None = None,
    ) -> None:
        self._terms = terms
        self._leader = 0
        """The generation of whoever leads, as far as it is known."""
        self._group_network = group_network
        names = certificates or {}
        self._tors = {
            datapath: Tor(datapath, tuple(ports), self._guards(ports), names.get(datapath))
            for datapath, ports in sorted(optical_ports.items())
        }
        self._numbers = transaction_ids()
        self._sessions: dict[object, Session] = {}
        self._current: dict[DatapathId, Session] = {}
        self._waiting: dict[DatapathId, _Waiting] = {}
        self._told: dict[int, str] = {}
        self._earliest: float | None = None

    def _guards(self, ports: Sequence[int]) -> Sequence[Rule]:
        return () if self._terms is None else guards(self._terms.settings, ports, self._group_network)

    @property
    def connected(self) -> int:
        """How many of our ToRs have a connection."""
        return len(self._current)

    def knows(self, datapath: DatapathId) -> bool:
        """Whether `datapath` is one of ours."""
        return datapath in self._tors

    def serves(self, session: object) -> bool:
        """Whether a connection is that of one of our ToRs, or waits to become it."""
        return session in self._sessions or any(waiting.session.handle is session for waiting in self._waiting.values())

    def receive(self, happened: Input, now: float) -> list[Effect]:
        """The effects of one input."""
        match happened:
            case Connected():
                effects = self._connected(happened, now)
            case HandshakeFailed(_, datapath, names, reason):
                tor = self._tors.get(datapath)
                is_ours = tor is not None and tor.is_proved_by(names) and datapath not in self._current
                effects = [DeviceDown(datapath, reason)] if is_ours else []
            case Follow(generation):
                self._leader, effects = generation, []
            case Lead(terms):
                effects = self._lead(terms, now)
            case Command() | Read() | Probe():
                effects = self._wanted(happened, now)
            case _ if session := self._sessions.get(happened.session):
                effects = self._said(session, happened, now)
            case _:
                effects = self._said_while_waiting(happened)
        return self._without_repetitions(effects)

    def expire(self, now: float) -> list[Effect]:
        """The effects of time alone."""
        if self._earliest is None or now < self._earliest:
            return []
        effects = [e for session in list(self._sessions.values()) for e in self._kept(session, session.expire(now))]
        late = [datapath for datapath, waiting in self._waiting.items() if waiting.until <= now]
        for datapath in late:
            if (old := self._current.get(datapath)) is not None:
                effects += self._kept(old, old.hang_up("the switch opened a new connection, and is silent on this one"))
            effects += self._admit(datapath, now)
        deadlines = [session.deadline() for session in self._sessions.values()]
        deadlines += [waiting.until for waiting in self._waiting.values()]
        self._earliest = min((deadline for deadline in deadlines if deadline is not None), default=None)
        return self._without_repetitions(effects)

    def next_deadline(self) -> float | None:
        """When `expire` is next to be called (it may then have nothing to do); None while nothing can be late."""
        return self._earliest

    def _connected(self, connected: Connected, now: float) -> list[Effect]:
        tor = self._tors.get(connected.datapath)
        if tor is None:
            return []
        name = f"ToR {tor.datapath:016x}"
        if not tor.is_proved_by(connected.names):
            return [
                RejectCall(connected.session, f"says that it is {name}, but shows no certificate of {tor.certificate}")
            ]
        if tor.datapath in self._waiting:
            return [RejectCall(connected.session, f"is a third connection of {name}")]
        session = Session(connected, tor, self._numbers)
        old = self._current.get(tor.datapath)
        if old is None:
            return self._begin(session, now)
        self._waiting[tor.datapath] = _Waiting(session, now + CHALLENGE)
        self._earliest = min(now + CHALLENGE, self._earliest or now + CHALLENGE)
        return self._kept(old, old.challenge())

    def _begin(self, session: Session, now: float) -> list[Effect]:
        self._sessions[session.handle] = self._current[session.datapath] = session
        if self._terms is None:
            return self._kept(session, session.become_standby(self._leader, now))
        return self._kept(session, session.lead(self._tors[session.datapath], self._terms, now))

    def _lead(self, terms: Terms, now: float) -> list[Effect]:
        self._terms = terms
        self._tors = {name: replace(tor, guards=self._guards(tor.optical_ports)) for name, tor in self._tors.items()}
        sessions = list(self._sessions.values())
        return [e for s in sessions for e in self._kept(s, s.lead(self._tors[s.datapath], terms, now))]

    def _admit(self, datapath: DatapathId, now: float) -> list[Effect]:
        """Let the second connection of a ToR, if there is one, be its connection."""
        waiting = self._waiting.pop(datapath, None)
        return [] if waiting is None else self._begin(waiting.session, now)

    def _said_while_waiting(self, happened: Input) -> list[Effect]:
        """What is heard on a second connection: that it is gone, and how its ports are."""
        waiting = next(
            (w for w in self._waiting.values() if w.session.handle is getattr(happened, "session", None)), None
        )
        match happened:
            case Lost() if waiting is not None:
                del self._waiting[waiting.session.datapath]
            case PortReported() if waiting is not None:
                waiting.session.hears(happened)
        return []

    def _wanted(self, wanted: DriverInput, now: float) -> list[Effect]:
        match wanted:
            case Command(change, asked):
                session = self._current.get(change.datapath)
                if session is None or not session.up:
                    reason = f"ToR {change.datapath:016x} is not connected"
                    return [StepFailed(change.datapath, *step, reason=reason) for step in merged(change.changes)]
                return self._kept(session, session.command(change, asked))
            case Read(datapath, mend) if (session := self._current.get(datapath)) and session.up:
                return self._kept(session, session.read(mend, now))
            case Probe(datapath) if (session := self._current.get(datapath)) and session.up:
                return session.probe(wanted)
            case _:
                return []

    def _said(self, session: Session, happened: Input, now: float) -> list[Effect]:
        if isinstance(happened, Lost):
            return self._kept(session, session.end(happened.reason)) + self._admit(session.datapath, now)
        effects = self._answers_the_challenge(session)
        match happened:
            case Demoted() | MalformedMessage() | PortReported() | ProbeArrived():
                return effects + self._kept(session, session.hears(happened))
            case Connected() | HandshakeFailed() | Command() | Read() | Probe() | Follow() | Lead() | Lost():
                return effects
            case answer:
                return effects + self._kept(session, session.answered(answer, now))

    def _answers_the_challenge(self, session: Session) -> list[Effect]:
        waiting = self._waiting.pop(session.datapath, None)
        if waiting is None:
            return []
        return [
            RejectCall(
                waiting.session.handle, f"is a second connection of ToR {session.datapath:016x}: the first lives"
            )
        ]

    def _kept(self, session: Session, effects: list[Effect]) -> list[Effect]:
        """Note what has become of a session: when it is next due, or that it is gone."""
        if session.ended:
            del self._sessions[session.handle], self._current[session.datapath]
        elif (deadline := session.deadline()) is not None:
            self._earliest = deadline if self._earliest is None else min(self._earliest, deadline)
        return effects

    def _without_repetitions(self, effects: list[Effect]) -> list[Effect]:
        """A ToR that is refused, or refuses, again and again with every new connection is told of once."""
        kept: list[Effect] = []
        for effect in effects:
            match effect:
                case DeviceUp(device):
                    self._told.pop(int(device), None)
                case DeviceDown(device, reason) if self._told.get(int(device)) == reason:
                    continue
                case DeviceDown(device, reason):
                    self._told[int(device)] = reason
            kept.append(effect)
        return kept
