"""The words between the sans-IO core of this part and its shells: inputs, messages to ToRs, effects.

A **session** is one connection of one ToR, named by an opaque object and compared by identity, because the same ToR
can be back before its old connection is reported dead.
"""

from __future__ import annotations

from dataclasses import dataclass

from blast_controller.core.model.commands import SetForwarding
from blast_controller.core.model.events import (
    DeviceConnected,
    DeviceDisconnected,
    PortChanged,
    ProbeReceived,
    StepConfirmed,
    StepFailed,
    TableObserved,
)
from blast_controller.core.model.identifiers import DatapathId
from blast_controller.openflow.rules import Operation, Rule, RuleSettings, UnknownRule
from blast_controller.serving.tls import CertificateNames

# ---------------------------------------------------------------------------------------- inputs: messages of a ToR


@dataclass(frozen=True, slots=True)
class PortState:
    """A port of a ToR and whether it has a link; if not, why."""

    port: int
    up: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Connected:
    """A ToR finished its handshake on `session`, claims to be `datapath`, and has these ports."""

    session: object
    datapath: DatapathId
    ports: tuple[PortState, ...] = ()
    names: CertificateNames = frozenset()
    """The names in its certificate; empty without one."""


@dataclass(frozen=True, slots=True)
class SessionLost:
    """`session` is dead."""

    session: object
    reason: str


@dataclass(frozen=True, slots=True)
class HandshakeFailed:
    """A connection of this ToR was closed before it could be used; `names` are those of its certificate."""

    session: object
    datapath: DatapathId
    names: CertificateNames
    reason: str


@dataclass(frozen=True, slots=True)
class RoleAnswered:
    """The ToR answered the claim `xid`."""

    session: object
    xid: int
    master: bool


@dataclass(frozen=True, slots=True)
class RulesRead:
    """One part of the answer to ReadOurRules."""

    session: object
    xid: int
    rules: tuple[Rule | UnknownRule, ...]
    last: bool


@dataclass(frozen=True, slots=True)
class RulesCounted:
    """The answer to CountRules."""

    session: object
    xid: int
    rules: int


@dataclass(frozen=True, slots=True)
class BarrierAnswered:
    """The ToR answered the barrier request `xid`."""

    session: object
    xid: int


@dataclass(frozen=True, slots=True)
class ErrorReceived:
    """The ToR answered the message `xid` with an error; `fenced` if because another controller is its master."""

    session: object
    xid: int
    reason: str
    fenced: bool = False


@dataclass(frozen=True, slots=True)
class MasterLost:
    """Another controller has become the master of the ToR."""

    session: object


@dataclass(frozen=True, slots=True)
class PortReported:
    """A port of the ToR came, went or changed."""

    session: object
    state: PortState


@dataclass(frozen=True, slots=True)
class ProbeArrived:
    """A probe frame came in by `port`."""

    session: object
    port: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class MalformedMessage:
    """A message of the ToR that violates the protocol."""

    session: object
    reason: str


Answer = RoleAnswered | RulesRead | RulesCounted | BarrierAnswered | ErrorReceived
News = MasterLost | PortReported | ProbeArrived | MalformedMessage

# --------------------------------------------------------------------------------------- inputs: commands of the core


@dataclass(frozen=True, slots=True)
class ChangeRequested:
    """The core wants `change`, asked at time `asked`."""

    change: SetForwarding
    asked: float


@dataclass(frozen=True, slots=True)
class Read:
    """The core wants to know the rules of a ToR, and unless only looking, what is the driver's own made right."""

    datapath: DatapathId
    mend: bool


@dataclass(frozen=True, slots=True)
class ProbeRequested:
    """The core wants a probe frame sent out of a port."""

    datapath: DatapathId
    port: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class MasterTerms:
    """The terms for every ToR of a leader; `step_timeout` is in seconds."""

    settings: RuleSettings
    generation: int
    step_timeout: float


@dataclass(frozen=True, slots=True)
class Follow:
    """Another controller leads, and its generation is this."""

    generation: int


@dataclass(frozen=True, slots=True)
class Lead:
    """From now on we lead."""

    terms: MasterTerms


DriverInput = ChangeRequested | Read | ProbeRequested | Follow | Lead
Input = Connected | HandshakeFailed | SessionLost | Answer | News | DriverInput

# ---------------------------------------------------------------------------------------------- messages to a ToR


@dataclass(frozen=True, slots=True)
class RequestMaster:
    """Make us the master, unless a controller of a later generation already is (OFPT_ROLE_REQUEST)."""

    generation: int


@dataclass(frozen=True, slots=True)
class RequestSlave:
    """Make us a slave, unless a controller of a generation later than this is known (OFPT_ROLE_REQUEST)."""

    generation: int


@dataclass(frozen=True, slots=True)
class ReadOurRules:
    """Query all rules with Blast's magic, in any table (OFPMP_FLOW)."""


@dataclass(frozen=True, slots=True)
class CountRules:
    """Query the number of all rules (OFPMP_AGGREGATE)."""


@dataclass(frozen=True, slots=True)
class Fence:
    """Answer when everything before is done (OFPT_BARRIER_REQUEST)."""


@dataclass(frozen=True, slots=True)
class TransmitProbe:
    """Send a probe frame out of `port` (OFPT_PACKET_OUT)."""

    port: int
    payload: bytes


Message = Operation | RequestMaster | RequestSlave | ReadOurRules | CountRules | Fence | TransmitProbe
Numbered = tuple[int, Message]
"""A message under its transaction id (xid), which the ToR's answer or error carries too."""

# --------------------------------------------------------------------------------------------------------- effects


@dataclass(frozen=True, slots=True)
class Transmit:
    """Send these messages in this order."""

    session: object
    messages: tuple[Numbered, ...]


@dataclass(frozen=True, slots=True)
class HangUp:
    """Close `session`."""

    session: object
    reason: str


@dataclass(frozen=True, slots=True)
class RejectCall:
    """Close `session`, which is not, or not now, the ToR that it claims to be, without notifying the core."""

    session: object
    reason: str


Event = DeviceConnected | DeviceDisconnected | StepConfirmed | StepFailed | TableObserved | PortChanged | ProbeReceived
Effect = Transmit | HangUp | RejectCall | Event
StepKey = tuple[int, int]
"""(reservation, step)"""
