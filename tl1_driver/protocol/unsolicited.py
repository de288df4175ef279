"""A budget for unsolicited data from a switch: alarms, stray answers, echoes, noise.

The budget has room for a storm of alarms; a peer that exceeds it is not a usable switch. All received bytes count, the
answers to commands are refunded, and messages that cost work beyond their size have a minimum price.
"""

from __future__ import annotations

from dataclasses import dataclass

BURST = 2 << 20
"""Bytes: two of the largest accepted answers, or two thousand alarms."""
PER_SECOND = 64 << 10
PRICE = 1024
"""Bytes that an unsolicited message counts in addition to its size."""
ACKNOWLEDGMENT = 256
"""Bytes that an acknowledgment counts in addition to its size."""


@dataclass(slots=True)
class UnsolicitedBudget:
    """The remaining budget in bytes; on any monotonic clock."""

    left: float = BURST
    at: float | None = None

    def spend(self, size: int, now: float) -> None:
        """Count `size` received bytes."""
        elapsed = 0.0 if self.at is None else max(0.0, now - self.at)
        self.left = min(BURST, self.left + elapsed * PER_SECOND) - size
        self.at = now

    def refund(self, size: int) -> None:
        """Refund `size` bytes that belong to an answer."""
        self.left = min(BURST, self.left + size)

    @property
    def overdrawn(self) -> bool:
        """True if the budget is exceeded."""
        return self.left < 0
