"""How much a switch may say that nobody asked for: alarms, stray answers, echoes, noise.

A storm of alarms has room; who goes on beyond that is no switch, or none that can be worked with. Everything that comes
counts, an answer to a command of ours is taken out again, and what makes work beyond its size has a least price.
"""

from __future__ import annotations

from dataclasses import dataclass

BURST = 2 << 20
"""Bytes; two of the largest answers that are accepted, or two thousand alarms."""
PER_SECOND = 64 << 10
PRICE = 1024
"""Bytes that a message counts, beside its own, that nobody asked for."""
ACKNOWLEDGMENT = 256
"""The same, for one that says that a command is being worked at."""


@dataclass(slots=True)
class UnaskedBudget:
    """What is left; on any monotonic clock."""

    left: float = BURST
    at: float | None = None

    def spend(self, size: int, now: float) -> None:
        """Count so many bytes that have come."""
        elapsed = 0.0 if self.at is None else max(0.0, now - self.at)
        self.left = min(BURST, self.left + elapsed * PER_SECOND) - size
        self.at = now

    def refund(self, size: int) -> None:
        """So many of them were asked for."""
        self.left = min(BURST, self.left + size)

    @property
    def overdrawn(self) -> bool:
        """Whether there was too much."""
        return self.left < 0
