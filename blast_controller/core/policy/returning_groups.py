"""Which groups come back before anybody else needs their pieces, how long they stay away, and whether one is alone."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Collection
from dataclasses import dataclass

from blast_controller.core.inventory.kinds import Kind

Group = tuple[str, str, frozenset[str]]
"""(tenant, sender, receivers)"""

MAX_GROUPS = 1024
"""Groups that are remembered; of more the one that was not heard of for longest is forgotten."""

MAX_TRUST = 2
"""So that a job that was disturbed once keeps its light the next time, and one that was twice does not."""


@dataclass(slots=True)
class _Visits:
    """`left` is when the group was done last (None: it is not done yet), `away` how long it was away before.

    `trust` grows whenever it comes back in peace, and sinks when it was disturbed: when somebody has needed a piece of
    one of its `kinds` for which it would have had to give way. By then that had happened `needs` times.
    """

    trust: int = 0
    left: float | None = None
    away: float = 0.0
    kinds: Collection[Kind] = ()
    needs: int = 0


class ReturningGroups:
    """Remembers groups by when they came and went; times on the core's clock, in seconds.

    `needed` counts how often the last dark piece of a kind was taken, or one of a tree that was kept lit.
    """

    def __init__(self) -> None:
        self.needed: Counter[Kind] = Counter()
        self._visits: OrderedDict[Group, _Visits] = OrderedDict()
        self._latest: Group | None = None
        self._latest_at = self._other_at = -math.inf

    def come(self, group: Group, found: bool, within: float, now: float) -> None:
        """A group is given light, which it has `found` lit or not; who stays away longer than `within` is new again."""
        visits = self._visits.setdefault(group, _Visits())
        if visits.left is not None:
            visits.away = now - visits.left
            peace = found or self._needs(visits.kinds) == visits.needs
            trust = visits.trust + (1 if peace else -1)
            visits.trust = min(max(trust, 0), MAX_TRUST) if visits.away <= within else 0
            visits.left = None
        self._hear(group, now)

    def go(self, group: Group, kinds: Collection[Kind], now: float) -> float | None:
        """A group is done with pieces of these kinds; how long it was away last, or None if it is not trusted."""
        visits = self._visits.setdefault(group, _Visits())
        visits.left, visits.kinds, visits.needs = now, kinds, self._needs(kinds)
        self._hear(group, now)
        return visits.away if visits.trust else None

    def expect(self, group: Group, kinds: Collection[Kind], now: float) -> None:
        """A group whose tree an earlier run has kept lit is trusted, of which nobody remembers more."""
        self._visits[group] = _Visits(1, now, 0.0, kinds, self._needs(kinds))
        self._hear(group, now)

    def _needs(self, kinds: Collection[Kind]) -> int:
        return sum(self.needed[kind] for kind in kinds)

    def _hear(self, group: Group, now: float) -> None:
        self._visits.move_to_end(group)
        if len(self._visits) > MAX_GROUPS:
            self._visits.popitem(last=False)
        if group != self._latest:
            self._latest, self._other_at = group, self._latest_at
        self._latest_at = now

    @property
    def alone_since(self) -> float:
        """When another group than the latest was heard of last."""
        return self._other_at

    def is_alone(self, within: float, now: float) -> bool:
        """Whether only one group was heard of within so long."""
        return now - self._other_at > within
