"""No faster than a rate: what may leave now, in pieces that suit it."""

from __future__ import annotations

_SLACK = 1.1
"""What waits somewhere may catch up by so much: a tree's rate is kept where its blocks are dealt."""
_PIECE_SECONDS = 0.01
_MIN_PIECE, _MAX_PIECE = 8 << 10, 1 << 20
"""A piece is what leaves in one go: of a slow or far edge a small one, so that others get their turn and the queues on
its way stay short; on a fast one a large one, for each costs a wake-up (section 3.3 of the paper: small messages over
the wide area, large ones locally)."""
_BURST_SECONDS = 0.03
"""Clocks wake us late; what was not used for so long may be made up for."""


class Pace:
    """`rate` in bits/s of data, and a tenth more; `piece`: bytes at once. No clock."""

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate / 8 * _SLACK
        self.piece = int(min(max(self._rate * _PIECE_SECONDS, _MIN_PIECE), _MAX_PIECE))
        self._most = max(self._rate * _BURST_SECONDS, 2.0 * self.piece)
        self._tokens, self._at = self._most, now

    def permits(self, now: float) -> bool:
        """A piece may leave."""
        self._tokens = min(self._most, self._tokens + (now - self._at) * self._rate)
        self._at = now
        return self._tokens >= self.piece

    def sent(self, size: int) -> None:
        """So many bytes have left."""
        self._tokens -= size

    def wait(self, now: float) -> float:
        """Seconds until a piece may leave."""
        return max(0.0, (self.piece - self._tokens) / self._rate - (now - self._at))
