"""The sans-IO core of the OpenFlow driver: connections, and the ToR to which each input or answer belongs.

Theory of operation
-------------------
On a standby, a ToR that connects is asked for the slave role and receives nothing else; when the controller becomes
the leader, it takes over all connected ToRs at once.

The master role comes first: the role request carries the controller's **generation**, and a ToR that knows a controller
of a later one refuses, so a replaced controller writes nothing. Then the ToR's rules are read and correct ones are left
unchanged, whichever run wrote them, so that neither a restart of the controller nor a short interruption of the
control network loses a packet. Only then is the ToR up, and the core receives its forwards.

**Identity of ToRs.** If ToRs have certificates, each proves one datapath: its name must be the configured one. A second
connection of a connected ToR does not simply replace the first, because then any peer that can connect could take over
any ToR: it waits while the first one is challenged. If that answers within `CHALLENGE` seconds, the second one is
refused; otherwise the ToR itself has reconnected before its old connection was found dead. A third one is refused at
once.

`session.py` has the states of a connection, `dialogues.py` its dialogues, `audit.py` the check of rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Network

from blast_controller.core.model.commands import SetForwarding
from blast_controller.core.model.events import DeviceConnected, DeviceDisconnected, StepConfirmed, StepFailed
from blast_controller.core.model.identifiers import DatapathId
from blast_controller.openflow.dialogues import transaction_ids
from blast_controller.openflow.rules import Rule, guards, merged
from blast_controller.openflow.session import Tor, TorSession
from blast_controller.openflow.vocabulary import (
    BarrierAnswered,
    ChangeRequested,
    Connected,
    Effect,
    ErrorReceived,
    Follow,
    HandshakeFailed,
    Input,
    Lead,
    MalformedMessage,
    MasterLost,
    MasterTerms,
    PortReported,
    ProbeArrived,
    ProbeRequested,
    Read,
    RejectCall,
    RoleAnswered,
    RulesCounted,
    RulesRead,
    SessionLost,
    Transmit,
)

CHALLENGE = 2.0
"""Seconds for an answer on the first connection of a ToR while a second one waits."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A second connection of a ToR, until when the first one has time to answer."""

    session: TorSession
    until: float


class ForwardingSteps:
    """Turns inputs into effects. Times are seconds of any monotonic clock.

    Parameters
    ----------
    terms : the terms for every ToR; None on a standby, until `Lead` arrives.
    optical_ports : the optical ports of each known datapath; others are never written to.
    group_network : the range of group addresses, e.g. 239.77.0.0/16.
    certificates : the name that each ToR's certificate must have; ToRs without an entry need none.
    """

    def __init__(
        self,
        terms: MasterTerms | None,
        optical_ports: Mapping[DatapathId, Sequence[int]],
        group_network: IPv4Network,
        certificates: Mapping[DatapathId, str] | None = None,
    ) -> None:
        self._terms = terms
        self._leader = 0
        """The generation of the leader, as far as known."""
        self._group_network = group_network
        names = certificates or {}
        self._tors = {
            datapath: Tor(datapath, tuple(ports), self._guards(ports), names.get(datapath))
            for datapath, ports in sorted(optical_ports.items())
        }
        self._numbers = transaction_ids()
        self._sessions: dict[object, TorSession] = {}
        self._current: dict[DatapathId, TorSession] = {}
        self._waiting: dict[DatapathId, _Waiting] = {}
        self._notified: dict[int, str] = {}
        self._earliest: float | None = None

    def _guards(self, ports: Sequence[int]) -> Sequence[Rule]:
        return () if self._terms is None else guards(self._terms.settings, ports, self._group_network)

    @property
    def connected(self) -> int:
        """Return the number of configured ToRs with a connection."""
        return len(self._current)

    def knows(self, datapath: DatapathId) -> bool:
        """Return true if `datapath` is a configured ToR."""
        return datapath in self._tors

    def serves(self, session: object) -> bool:
        """Return true if a connection is that of a configured ToR, or waits to become it."""
        return session in self._sessions or any(waiting.session.handle is session for waiting in self._waiting.values())

    def receive(self, happened: Input, now: float) -> list[Effect]:
        """Return the effects of one input."""
        match happened:
            case ChangeRequested(change, asked):
                effects = self._command(change, asked)
            case Connected():
                effects = self._connected(happened, now)
            case HandshakeFailed(_, datapath, names, reason):
                tor = self._tors.get(datapath)
                is_ours = tor is not None and tor.is_proved_by(names) and datapath not in self._current
                effects = [DeviceDisconnected(datapath, reason)] if is_ours else []
            case Follow(generation):
                self._leader, effects = generation, []
            case Lead(terms):
                effects = self._lead(terms, now)
            case Read() | ProbeRequested():
                effects = self._handle_query(happened, now)
            case _ if session := self._sessions.get(happened.session):
                effects = self._handle_message(session, happened, now)
            case _:
                effects = self._handle_while_waiting(happened)
        return self._without_repetitions(effects)

    def expire(self, now: float) -> list[Effect]:
        """Return the effects of time alone."""
        if self._earliest is None or now < self._earliest:
            return []
        effects = [e for session in list(self._sessions.values()) for e in self._kept(session, session.expire(now))]
        late = [datapath for datapath, waiting in self._waiting.items() if waiting.until <= now]
        for datapath in late:
            if (old := self._current.get(datapath)) is not None:
                effects += self._kept(
                    old, old.hang_up("the switch opened a new connection and does not answer on this one")
                )
            effects += self._admit(datapath, now)
        deadlines = [session.deadline for session in self._sessions.values()]
        deadlines += [waiting.until for waiting in self._waiting.values()]
        self._earliest = min((deadline for deadline in deadlines if deadline is not None), default=None)
        return self._without_repetitions(effects)

    def next_deadline(self) -> float | None:
        """Return the latest time of the next `expire`, or None if nothing is outstanding.

        That call may have nothing to do.
        """
        return self._earliest

    def _connected(self, connected: Connected, now: float) -> list[Effect]:
        tor = self._tors.get(connected.datapath)
        if tor is None:
            return []
        name = f"ToR {tor.datapath:016x}"
        if not tor.is_proved_by(connected.names):
            return [RejectCall(connected.session, f"claims to be {name}, but its certificate is not {tor.certificate}")]
        if tor.datapath in self._waiting:
            return [RejectCall(connected.session, f"is a third connection of {name}")]
        session = TorSession(connected, tor, self._numbers)
        old = self._current.get(tor.datapath)
        if old is None:
            return self._begin(session, now)
        self._waiting[tor.datapath] = _Waiting(session, now + CHALLENGE)
        self._earliest = min(now + CHALLENGE, self._earliest or now + CHALLENGE)
        return self._kept(old, old.challenge())

    def _begin(self, session: TorSession, now: float) -> list[Effect]:
        self._sessions[session.handle] = self._current[session.datapath] = session
        if self._terms is None:
            return self._kept(session, session.become_standby(self._leader, now))
        return self._kept(session, session.lead(self._tors[session.datapath], self._terms, now))

    def _lead(self, terms: MasterTerms, now: float) -> list[Effect]:
        self._terms = terms
        self._tors = {name: replace(tor, guards=self._guards(tor.optical_ports)) for name, tor in self._tors.items()}
        sessions = list(self._sessions.values())
        return [e for s in sessions for e in self._kept(s, s.lead(self._tors[s.datapath], terms, now))]

    def _admit(self, datapath: DatapathId, now: float) -> list[Effect]:
        """Let the second connection of a ToR, if there is one, be its connection."""
        waiting = self._waiting.pop(datapath, None)
        return [] if waiting is None else self._begin(waiting.session, now)

    def _handle_while_waiting(self, happened: Input) -> list[Effect]:
        """Process an input of a waiting second connection: its end, and the state of its ports."""
        waiting = next(
            (w for w in self._waiting.values() if w.session.handle is getattr(happened, "session", None)), None
        )
        match happened:
            case SessionLost() if waiting is not None:
                del self._waiting[waiting.session.datapath]
            case PortReported() if waiting is not None:
                waiting.session.handle_news(happened)
        return []

    def _command(self, change: SetForwarding, asked: float) -> list[Effect]:
        session = self._current.get(change.datapath)
        if session is None or not session.up:
            reason = f"ToR {change.datapath:016x} is not connected"
            return [StepFailed(change.datapath, *step, reason=reason) for step in merged(change.changes)]
        return self._kept(session, session.command(change, asked))

    def _handle_query(self, query: Read | ProbeRequested, now: float) -> list[Effect]:
        match query:
            case Read(datapath, mend) if (session := self._current.get(datapath)) and session.up:
                return self._kept(session, session.read(mend, now))
            case ProbeRequested(datapath) if (session := self._current.get(datapath)) and session.up:
                return session.probe(query)
            case _:
                return []

    def _handle_message(self, session: TorSession, happened: Input, now: float) -> list[Effect]:
        if isinstance(happened, SessionLost):
            return self._kept(session, session.end(happened.reason)) + self._admit(session.datapath, now)
        effects = self._answers_the_challenge(session)
        match happened:
            case BarrierAnswered() | RoleAnswered() | RulesRead() | RulesCounted() | ErrorReceived():
                return effects + self._kept(session, session.answered(happened, now))
            case MasterLost() | MalformedMessage() | PortReported() | ProbeArrived():
                return effects + self._kept(session, session.handle_news(happened))
            case _:
                return effects

    def _answers_the_challenge(self, session: TorSession) -> list[Effect]:
        waiting = self._waiting.pop(session.datapath, None)
        if waiting is None:
            return []
        return [
            RejectCall(
                waiting.session.handle,
                f"is a second connection of ToR {session.datapath:016x}, whose first connection is alive",
            )
        ]

    def _kept(self, session: TorSession, effects: list[Effect]) -> list[Effect]:
        """Note what has become of a session: when it is next due, or that it is gone."""
        if session.ended:
            del self._sessions[session.handle], self._current[session.datapath]
        elif session.deadline is not None and (self._earliest is None or session.deadline < self._earliest):
            self._earliest = session.deadline
        return effects

    def _without_repetitions(self, effects: list[Effect]) -> list[Effect]:
        """Drop repeated notifications of a ToR that is refused, or refuses, with every new connection."""
        kept: list[Effect] = []
        for effect in effects:
            match effect:
                case Transmit() | StepConfirmed():
                    pass
                case DeviceConnected(device):
                    self._notified.pop(int(device), None)
                case DeviceDisconnected(device, reason) if self._notified.get(int(device)) == reason:
                    continue
                case DeviceDisconnected(device, reason):
                    self._notified[int(device)] = reason
            kept.append(effect)
        return kept
