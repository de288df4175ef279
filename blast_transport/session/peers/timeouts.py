"""Deadlines until which a sender waits for a receiver, and the reasons it reports afterwards."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from blast_transport.session.peers.peer import UNANSWERED, Peer, PeerState
from blast_transport.session.peers.timings import SenderTimings
from blast_transport.wire.transports import Traits

_SILENT_SECONDS = 0.5
"""Receivers whose latest progress differs by less have stopped together."""


class SharedSilence:
    """Detection of times in which no receiver that keeps up progresses: then the network is at fault, not a receiver.

    `ended`: time at which the latest one ended.
    """

    def __init__(self) -> None:
        self.ended = self._latest = -math.inf

    def progressed(self, now: float) -> None:
        """Record that a receiver progressed."""
        if now > self._latest + _SILENT_SECONDS:
            self.ended = now
        self._latest = now

    def includes(self, progressed: float) -> bool:
        """Return whether a receiver that progressed last at this time stopped together with all others."""
        return self._latest <= progressed + _SILENT_SECONDS

    def excuse(self, seconds: float) -> None:
        """Extend the times by those seconds, in which this host did not run."""
        self.ended += seconds
        self._latest += seconds


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Deadlines in the current state of a session.

    `transport`: properties of the present phase, None before the first. `ended`: all data was sent once. `sized`: the
    size is known. `next_block`: of the optical transport. `served`: time of the last progress of any receiver that is
    served separately. `silence`: of all receivers. `others`: whether another receiver keeps up.
    """

    timings: SenderTimings
    transport: Traits | None
    ended: bool
    sized: bool
    next_block: int
    served: float
    silence: SharedSilence
    others: Callable[[Peer], bool]

    @property
    def hold_up(self) -> float:
        """Return the time for which one receiver may block the window; a demotion from a stream may lose its data."""
        return self.timings.hold_up if self.sized else self.timings.freeze

    def outstanding(self, peer: Peer) -> bool:
        """Return whether it keeps up and has not handled what was sent, so that others may have to wait for it."""
        return peer.active and self._behind(peer)

    def lingers(self, peer: Peer) -> bool:
        """Return whether it has not followed to another transport yet, and others wait for it."""
        return peer.state is PeerState.CHANGING_PHASE and not peer.demoted and self.others(peer)

    def expected_until(self, peer: Peer) -> float:
        """Return the time when the first phase begins without this receiver, which is then late.

        An invited receiver delays the first phase, and so does one that was invited and reconnects.
        """
        if self.transport is not None or peer.state not in (PeerState.INVITED, PeerState.ABSENT):
            return -math.inf
        # A late receiver cannot get the past of a stream.
        until = peer.progressed + (self.timings.late if self.sized else self.timings.ready)
        return until if peer.state is PeerState.INVITED else min(until, peer.awaited)

    def limit(self, peer: Peer) -> float | None:
        """Return the time at which it is given up, or demoted, unless it progresses."""
        if self.lingers(peer):
            return peer.progressed + self.timings.freeze
        if peer.state in UNANSWERED:
            return peer.progressed + self.timings.ready
        if peer.state is PeerState.ENDING or (peer.state is PeerState.READY and self.ended):
            # The last of its repairs may wait in a connection that accepts nothing.
            return self._taken_by(peer)
        if peer.state is PeerState.ABSENT and self.ended:
            return peer.awaited
        if self.outstanding(peer):
            return self._keeps_up_by(peer)
        if peer.state is PeerState.READY and not self.sized and self._behind(peer) and not self.others(peer):
            # A stream ends if the receivers that could still take it do not return.
            return peer.progressed + self.timings.stall
        return None

    def overdue(self, peer: Peer) -> str:
        """Return the reason why it was given up at its limit."""
        if peer.state is PeerState.ABSENT:
            return peer.reason
        if peer.state is PeerState.INVITED:
            return f"did not answer the invitation within {self.timings.ready:g} s"
        if peer.state is PeerState.CHANGING_PHASE:
            return f"did not follow to another transport within {self.timings.ready:g} s"
        if peer.retransmits or not self.ended:
            return f"no sign of taking its repairs for {self.timings.stall:g} s"
        return f"did not confirm: no progress for {self.timings.stall:g} s after the end of data"

    def _taken_by(self, peer: Peer) -> float:
        """Return its limit if the link may be busy with other receivers, whose progress extends it."""
        starved = max(peer.progressed, self.served) + self.timings.stall
        return min(starved, peer.progressed + max(self.timings.stall, self.timings.stall_limit))

    def _keeps_up_by(self, peer: Peer) -> float:
        """Return its limit, which is later while a shared network delivers nothing to any receiver."""
        if self.transport is None or not self.transport.shares_network:
            return peer.progressed + self.timings.freeze
        if self.silence.includes(peer.progressed):
            return peer.progressed + self.timings.stall
        return max(peer.progressed, self.silence.ended) + self.timings.freeze

    def _behind(self, peer: Peer) -> bool:
        paced = self.transport is None or not self.transport.repairs_itself
        return not self.ended and paced and peer.handled < self.next_block
