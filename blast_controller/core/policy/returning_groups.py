"""Groups that return before others need their pieces: their absence, and whether a group is alone."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Collection
from dataclasses import dataclass

from blast_controller.core.inventory.kinds import PieceKind

Group = tuple[str, str, frozenset[str]]
"""(tenant, sender, receivers)"""

MAX_GROUPS = 1024
"""The number of groups to remember; beyond it the least recently seen group is forgotten."""

MAX_TRUST = 2
"""A job disturbed once keeps its tree the next time; a job disturbed twice does not."""


@dataclass(slots=True)
class _Visits:
    """`left` is the end of the group's last use (None: in use), `away` the length of its previous absence.

    `trust` grows whenever the group returns undisturbed, and sinks when it was disturbed: when another group needed a
    piece of one of its `kinds` for which it would have been evicted. `needs` counts such cases up to then.
    """

    trust: int = 0
    left: float | None = None
    away: float = 0.0
    kinds: Collection[PieceKind] = ()
    needs: int = 0


class ReturningGroups:
    """Remembers groups by when they came and went; times on the core's clock, in seconds.

    `needed` counts how often the last dark piece of a kind was taken, or one of a tree that was kept lit.
    """

    def __init__(self) -> None:
        self.needed: Counter[PieceKind] = Counter()
        self._visits: OrderedDict[Group, _Visits] = OrderedDict()
        self._latest: Group | None = None
        self._latest_at = self._other_at = -math.inf

    def come(self, group: Group, found: bool, within: float, now: float) -> None:
        """Record that a group is served, with its tree `found` warm or not.

        A group counts as new after an absence of more than `within` seconds.
        """
        visits = self._visits.setdefault(group, _Visits())
        if visits.left is not None:
            visits.away = now - visits.left
            peace = found or self._needs(visits.kinds) == visits.needs
            trust = visits.trust + (1 if peace else -1)
            visits.trust = min(max(trust, 0), MAX_TRUST) if visits.away <= within else 0
            visits.left = None
        self._note_seen(group, now)

    def go(self, group: Group, kinds: Collection[PieceKind], now: float) -> float | None:
        """Record the end of a group's use of these kinds.

        Return its last absence in seconds, or None if it is not trusted.
        """
        visits = self._visits.setdefault(group, _Visits())
        visits.left, visits.kinds, visits.needs = now, kinds, self._needs(kinds)
        self._note_seen(group, now)
        return visits.away if visits.trust else None

    def expect(self, group: Group, kinds: Collection[PieceKind], now: float) -> None:
        """Trust a group whose tree an earlier run kept warm, without its history."""
        self._visits[group] = _Visits(1, now, 0.0, kinds, self._needs(kinds))
        self._note_seen(group, now)

    def _needs(self, kinds: Collection[PieceKind]) -> int:
        return sum(self.needed[kind] for kind in kinds)

    def _note_seen(self, group: Group, now: float) -> None:
        self._visits.move_to_end(group)
        if len(self._visits) > MAX_GROUPS:
            self._visits.popitem(last=False)
        if group != self._latest:
            self._latest, self._other_at = group, self._latest_at
        self._latest_at = now

    @property
    def alone_since(self) -> float:
        """Return when another group than the latest was last seen."""
        return self._other_at

    def is_alone(self, within: float, now: float) -> bool:
        """Return true if only one group was seen within this time."""
        return now - self._other_at > within
