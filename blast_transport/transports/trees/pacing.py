"""Pacing of an edge: the data that may leave now, in pieces of a suitable size."""

from __future__ import annotations

_SLACK = 1.1
"""Factor by which queued data may catch up: the distribution of the blocks keeps a tree's rate."""
_PIECE_SECONDS = 0.01
_MIN_PIECE, _MAX_PIECE = 8 << 10, 1 << 20
"""A piece is sent at once: small on a slow or long edge, so that others are not delayed and queues on its path stay
short; large on a fast one, because each costs a wake-up (section 3.3 of the paper: small messages over the wide area,
large ones locally)."""
_BURST_SECONDS = 0.03
"""Time of unused rate that may be made up for, because wake-ups are late."""


class TreePacer:
    """Pacer for `rate` bits/s of data, and a tenth more; `piece`: bytes at once. No clock."""

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate / 8 * _SLACK
        self.piece = int(min(max(self._rate * _PIECE_SECONDS, _MIN_PIECE), _MAX_PIECE))
        self._max_tokens = max(self._rate * _BURST_SECONDS, 2.0 * self.piece)
        self._tokens, self._at = self._max_tokens, now

    def permits(self, now: float) -> bool:
        """Return whether a piece may leave."""
        self._tokens = min(self._max_tokens, self._tokens + (now - self._at) * self._rate)
        self._at = now
        return self._tokens >= self.piece

    def sent(self, size: int) -> None:
        """Count `size` bytes that left."""
        self._tokens -= size

    def wait(self, now: float) -> float:
        """Return the seconds until a piece may leave."""
        return max(0.0, (self.piece - self._tokens) / self._rate - (now - self._at))
