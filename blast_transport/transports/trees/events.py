"""What a host's thread tells its transport."""

from __future__ import annotations

from dataclasses import dataclass

from blast_transport.transports.trees.protocol.words import Word


@dataclass(frozen=True, slots=True)
class Settled:
    """Blocks were put into the store."""


@dataclass(frozen=True, slots=True)
class StoreFailed:
    """The store takes nothing more, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Dealt:
    """At the sender: all blocks before `stop` are dealt, or need not be."""

    stop: int


@dataclass(frozen=True, slots=True)
class Said:
    """What is to be told of this host to whoever watches over the phase."""

    word: Word


@dataclass(frozen=True, slots=True)
class Drained:
    """At the sender: every tree is through at all that it reaches."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The last event of all; `reason` is empty if that was meant to be."""

    reason: str


Event = Settled | StoreFailed | Dealt | Said | Drained | Ended
