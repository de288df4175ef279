"""A budget for data that a switch sends without being asked: alarms, stray answers, echoes, padding.

The budget has room for a storm of alarms; a peer that exceeds it is not a usable switch. All received bytes count, the
answers to commands are refunded, and messages that cost work beyond their size have a minimum price.
"""

from __future__ import annotations

from dataclasses import dataclass

BURST = 2 << 20
"""Bytes: two of the largest accepted TL1 answers, or two thousand alarms."""
PER_SECOND = 64 << 10
"""Bytes that are added per second: sixty alarms, more than a person could read."""

FLOOD = "the switch sends far more than it is asked for"


class FloodError(ConnectionError):
    """The connection was ended because its peer sent far too much unsolicited data."""


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
