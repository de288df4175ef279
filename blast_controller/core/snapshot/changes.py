"""Differences between successively published snapshots, by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from blast_controller.core.model.requests import RequestKey

MAX_NAMED = 10_000
"""The limit of names of one kind; beyond it everything counts as changed, which bounds memory without readers."""


class Changes(NamedTuple):
    """Differences between two snapshots.

    `requests`, `trees` (by reservation) and `units` changed; `away`: the connection of devices changed; `warm`: warm
    trees changed; `everything`: the names of the changes are unknown.
    """

    requests: frozenset[RequestKey] = frozenset()
    trees: frozenset[int] = frozenset()
    units: frozenset[str] = frozenset()
    away: bool = False
    warm: bool = False
    everything: bool = False

    def __or__(self, later: Changes) -> Changes:
        """Return the union of two changes."""
        return Changes(
            self.requests | later.requests,
            self.trees | later.trees,
            self.units | later.units,
            self.away or later.away,
            self.warm or later.warm,
            self.everything or later.everything,
        )


NOTHING = Changes()
EVERYTHING = Changes(everything=True)


class ChangeCollector:
    """Collects changes until they are read."""

    def __init__(self) -> None:
        self._requests: set[RequestKey] = set()
        self._trees: set[int] = set()
        self._units: set[str] = set()
        self._away = self._warm = self._everything = False

    def note(self, requests: Iterable[RequestKey], trees: Iterable[int], units: Iterable[str]) -> None:
        """Note changed objects."""
        self._requests.update(requests)
        self._trees.update(trees)
        self._units.update(units)
        if max(len(self._requests), len(self._trees), len(self._units)) > MAX_NAMED:
            self.note_everything()

    def note_away(self) -> None:
        """Note that a device connected or disconnected."""
        self._away = True

    def note_warm(self) -> None:
        """Note a change of warm trees."""
        self._warm = True

    def note_everything(self) -> None:
        """Note changes without names."""
        self._forget()
        self._everything = True

    def take(self) -> Changes:
        """Return and clear the collected changes."""
        found = Changes(
            frozenset(self._requests),
            frozenset(self._trees),
            frozenset(self._units),
            self._away,
            self._warm,
            self._everything,
        )
        self._forget()
        return found

    def _forget(self) -> None:
        self._requests.clear()
        self._trees.clear()
        self._units.clear()
        self._away = self._warm = self._everything = False
