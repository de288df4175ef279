"""Rate limits of accounts: token buckets that take the time as an argument."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

MAX_ACCOUNTS = 10_000
"""Memory: accounts are addresses where clients need no login."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate limit in calls per second, with at most `burst` at once."""

    per_second: float = 1_000.0
    burst: int = 10_000


@dataclass(slots=True)
class CallRates:
    """One bucket for each account, full at first. Buckets that are full again are forgotten. Used under a lock."""

    rate: Rate
    _spent: dict[Hashable, tuple[float, float]] = field(default_factory=dict)
    """Of each account how many calls are missing from its bucket, and when that was so."""

    def seconds_until_free(self, account: Hashable, now: float) -> float:
        """Count a call that may be made now, and return 0; else return after how many seconds one may be."""
        spent = self._missing(account, now)
        if spent + 1 > self.rate.burst:
            return (spent + 1 - self.rate.burst) / self.rate.per_second
        self._spent[account] = (spent + 1, now)
        if len(self._spent) > MAX_ACCOUNTS:
            self._forget_full(now)
        return 0.0

    def _missing(self, account: Hashable, now: float) -> float:
        spent, since = self._spent.get(account, (0.0, now))
        return max(0.0, spent - (now - since) * self.rate.per_second)

    def _forget_full(self, now: float) -> None:
        """Forget accounts with a full bucket, and beyond the limit the oldest others: they gain at most one burst."""
        kept = {name: entry for name, entry in self._spent.items() if self._missing(name, now) > 0}
        oldest = sorted(kept, key=lambda name: kept[name][1])[: max(0, len(kept) - MAX_ACCOUNTS // 2)]
        for name in oldest:
            del kept[name]
        self._spent = kept
