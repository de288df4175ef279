"""Events of a host's thread for its transport."""

from __future__ import annotations

from dataclasses import dataclass

from blast_transport.transports.trees.protocol.fields import HostReport


@dataclass(frozen=True, slots=True)
class Settled:
    """Blocks are stored."""


@dataclass(frozen=True, slots=True)
class TreeStoreFailed:
    """The store accepts no more data."""

    reason: str


@dataclass(frozen=True, slots=True)
class BlocksDistributed:
    """At the sender: all blocks before `stop` are distributed, or need not be."""

    stop: int


@dataclass(frozen=True, slots=True)
class ReportReady:
    """A report of this host for the sender is due."""

    word: HostReport


@dataclass(frozen=True, slots=True)
class TreesDrained:
    """At the sender: every tree has delivered all blocks to all hosts that it reaches."""


@dataclass(frozen=True, slots=True)
class TreesEnded:
    """The last event; `reason` is empty after a regular end."""

    reason: str


Event = Settled | TreeStoreFailed | BlocksDistributed | ReportReady | TreesDrained | TreesEnded
