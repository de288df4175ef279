"""Who alone keeps the others waiting: found out over time, from how long the light waits and who is behind then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from blast_transport.session.peers.peer import Peer

_LONGEST_LOOK = 0.03
"""Seconds of waiting that one look counts at most."""


class Stragglers:
    """Judges the receivers that keep up. `blocked`: the light waits for them now."""

    def __init__(self, now: float) -> None:
        self.blocked = False
        self._judged = now
        # Those that have kept others waiting lately: few, whoever is there.
        self._suspects: dict[str, Peer] = {}

    def judge(self, peers: Mapping[str, Peer], window: int, now: float) -> Iterator[tuple[str, Peer]]:
        """Since the last time the light waited for receivers, or did not: note who alone was the cause; those."""
        # Who was kept from looking by his own machine has not heard yet how far the others are.
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
