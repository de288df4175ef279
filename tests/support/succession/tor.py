"""A ToR as Open vSwitch is one: rules by place, and for each connection a role that its controller has asked for.

Whoever connects is EQUAL and may write, generation or not. A request to be MASTER or SLAVE with an older generation
than the latest is refused as stale; a new MASTER makes the old one a SLAVE, which hears nothing of that; a SLAVE's
writes are refused. The generation outlives all connections.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from blast_controller.core.model.commands import Forward
from blast_controller.openflow.rules import (
    MAGIC,
    MAGIC_MASK,
    OWNER_MASK,
    AddRule,
    DeleteRule,
    DeleteStray,
    Match,
    Rule,
    forward_of,
)
from blast_controller.openflow.vocabulary import (
    BarrierAnswered,
    Claim,
    CountRules,
    Fence,
    Input,
    Message,
    Numbered,
    ReadOurRules,
    Refusal,
    RoleAnswered,
    RulesCounted,
    RulesRead,
    SendProbe,
    StandBy,
)

STALE = "OFPET_ROLE_REQUEST_FAILED/OFPRRFC_STALE"
IS_SLAVE = "OFPET_BAD_REQUEST/OFPBRC_IS_SLAVE"
_TURN = 1 << 64


class Role(Enum):
    """OpenFlow 1.3.5, section 6.3.6."""

    EQUAL = "equal"
    MASTER = "master"
    SLAVE = "slave"


class Session(Protocol):
    """The controller's end of a connection."""


@dataclass(eq=False)
class Channel:
    """The ToR's end of a connection; `claimed` is the generation with which its controller became the master."""

    session: object
    answer: Callable[[Input], None]
    role: Role = Role.EQUAL
    claimed: int | None = None
    is_open: bool = True


@dataclass(eq=False)
class ModelledTor:
    """`refused` counts writes of slaves, `stale` refused role requests; `wrong` writes are those that should not be."""

    datapath: int
    rules: dict[tuple[int, int, Match], Rule] = field(default_factory=dict)
    channels: list[Channel] = field(default_factory=list)
    generation: int | None = None
    newest: int = 0
    refused: int = 0
    stale: int = 0
    wrong: list[str] = field(default_factory=list)

    def hear(self, channel: Channel, numbered: Numbered) -> None:
        """A message has arrived."""
        xid, message = numbered
        match message:
            case Claim(generation):
                self._role(channel, xid, Role.MASTER, generation)
            case StandBy(generation):
                self._role(channel, xid, Role.SLAVE, generation)
            case AddRule() | DeleteRule() | DeleteStray() | SendProbe():
                self._write(channel, xid, message)
            case ReadOurRules():
                ours = tuple(rule for rule in self.rules.values() if rule.cookie & MAGIC_MASK == MAGIC)
                channel.answer(RulesRead(channel.session, xid, ours, True))
            case CountRules():
                channel.answer(RulesCounted(channel.session, xid, len(self.rules)))
            case Fence():
                channel.answer(BarrierAnswered(channel.session, xid))

    def close(self, channel: Channel) -> None:
        """A connection is over."""
        channel.is_open = False
        if channel in self.channels:
            self.channels.remove(channel)

    @property
    def held(self) -> frozenset[tuple[int, Forward]]:
        """Its forwards, each with its reservation."""
        found = ((rule.reservation, forward_of(rule)) for rule in self.rules.values())
        return frozenset((number, forward) for number, forward in found if forward is not None)

    def _role(self, channel: Channel, xid: int, role: Role, generation: int) -> None:
        if self.generation is not None and _signed(generation - self.generation) < 0:
            self.stale += 1
            channel.answer(Refusal(channel.session, xid, STALE, fenced=True))
            return
        self.generation = generation
        if role is Role.MASTER:
            for other in self.channels:
                if other.role is Role.MASTER and other is not channel:
                    other.role = Role.SLAVE
            channel.claimed = generation
            self.newest = max(self.newest, generation)
        channel.role = role
        channel.answer(RoleAnswered(channel.session, xid, role is Role.MASTER))

    def _write(self, channel: Channel, xid: int, message: Message) -> None:
        if channel.role is Role.SLAVE:
            self.refused += 1
            channel.answer(Refusal(channel.session, xid, IS_SLAVE, fenced=True))
            return
        if channel.claimed is None:
            self.wrong.append(f"{message} of a controller that has asked for no role")
        elif channel.claimed < self.newest:
            self.wrong.append(f"{message} of generation {channel.claimed} after that of {self.newest}")
        match message:
            case AddRule(rule):
                self.rules[rule.place] = rule
            case DeleteRule(rule):
                there = self.rules.get(rule.place)
                if there is not None and there.cookie & OWNER_MASK == rule.cookie & OWNER_MASK:
                    del self.rules[rule.place]


def _signed(difference: int) -> int:
    turned = difference % _TURN
    return turned - _TURN if turned >= _TURN // 2 else turned
