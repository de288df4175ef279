"""Detection of single receivers that block the window.

The detection uses the time that the sender waits, and the receivers that are behind then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from blast_transport.session.peers.peer import Peer

_LONGEST_LOOK = 0.03
"""Seconds of waiting that one look counts at most."""


class Stragglers:
    """Judge of the receivers that keep up. `blocked`: the optical transport waits for them now."""

    def __init__(self, now: float) -> None:
        self.blocked = False
        self._judged = now
        # Receivers that blocked the window lately: few, independent of their total number.
        self._suspects: dict[str, Peer] = {}

    def judge(self, peers: Mapping[str, Peer], window: int, now: float) -> Iterator[tuple[str, Peer]]:
        """Account for the time since the last call; yield each receiver that alone blocked the window."""
        # A sender that was kept from running does not know yet how far the receivers are.
        seconds, self._judged = min(now - self._judged, _LONGEST_LOOK), now
        if not self.blocked:
            for name, peer in list(self._suspects.items()):
                peer.held_up = max(0.0, peer.held_up - seconds)
                if not peer.held_up:
                    del self._suspects[name]
            return
        active = [(name, peer) for name, peer in peers.items() if peer.active]
        handled = sorted(peer.handled for _, peer in active)
        if len(active) < 2 or (median := handled[len(handled) // 2]) - handled[0] < window // 2:
            return
        for name, peer in active:
            if 2 * peer.handled <= handled[0] + median:
                peer.held_up += seconds
                self._suspects[name] = peer
                yield name, peer
