"""Until when a sender waits for a receiver, and what is said of one that was waited for too long."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from blast_transport.session.peers.peer import UNANSWERED, Peer, PeerState
from blast_transport.session.peers.timings import SenderTimings
from blast_transport.wire.transports import Traits


@dataclass(frozen=True, slots=True)
class Timeouts:
    """In a session as it stands now.

    `transport`: what that of the present phase does, None before the first. `ended`: all was sent once. `sized`: it is
    no stream that goes on. `next_block`: of the light. `served`: when somebody last took something of what is sent to
    each alone. `others`: whether anybody but this receiver keeps up.
    """

    timings: SenderTimings
    transport: Traits | None
    ended: bool
    sized: bool
    next_block: int
    served: float
    others: Callable[[Peer], bool]

    @property
    def hold_up(self) -> float:
        """For how long one alone may keep the others waiting: who is left behind by a stream may have lost it."""
        return self.timings.hold_up if self.sized else self.timings.freeze

    def outstanding(self, peer: Peer) -> bool:
        """It keeps up, has not dealt with what has gone out, and others may have to wait for it."""
        return peer.active and self._behind(peer)

    def lingers(self, peer: Peer) -> bool:
        """It has not followed to another transport yet, and others wait for it."""
        return peer.state is PeerState.CHANGING_PHASE and not peer.demoted and self.others(peer)

    def expected_until(self, peer: Peer) -> float:
        """When the others begin without this receiver, which comes late then.

        Who is invited holds up the first phase, and so does who was, and is on another way here.
        """
        if self.transport is not None or peer.state not in (PeerState.INVITED, PeerState.ABSENT):
            return -math.inf
        # What a stream has given is gone for who comes late.
        until = peer.progressed + (self.timings.late if self.sized else self.timings.ready)
        return until if peer.state is PeerState.INVITED else min(until, peer.awaited)

    def limit(self, peer: Peer) -> float | None:
        """When it will be given up, or demoted, unless it progresses."""
        if self.lingers(peer):
            return peer.progressed + self.timings.freeze
        if peer.state in UNANSWERED:
            return peer.progressed + self.timings.ready
        if peer.state is PeerState.ENDING or (peer.state is PeerState.READY and self.ended):
            # The last of what it is owed may wait in a connection that takes nothing.
            return self._taken_by(peer)
        if peer.state is PeerState.ABSENT and self.ended:
            return peer.awaited
        if self.outstanding(peer):
            return peer.progressed + self.timings.freeze
        if peer.state is PeerState.READY and not self.sized and self._behind(peer) and not self.others(peer):
            # A stream cannot go on for ever without those that still might take it.
            return peer.progressed + self.timings.stall
        return None

    def overdue(self, peer: Peer) -> str:
        """Why it was given up at its limit."""
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
        """While others are served the link may have nothing left for this one."""
        starved = max(peer.progressed, self.served) + self.timings.stall
        return min(starved, peer.progressed + max(self.timings.stall, self.timings.patience))

    def _behind(self, peer: Peer) -> bool:
        paced = self.transport is None or not self.transport.repairs_itself
        return not self.ended and paced and peer.handled < self.next_block
