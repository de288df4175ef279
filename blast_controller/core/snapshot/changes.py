"""What differs between the snapshots that were published one after the other, by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from blast_controller.core.model.requests import RequestKey

MAX_NAMED = 10_000
"""Of one kind; beyond it everything counts as changed, so that what nobody takes does not grow."""


class Changes(NamedTuple):
    """Requests, trees (by reservation) and units of which something differs, and whether devices' coming and going or
    what is kept lit does. `everything`: what differs is not known by name."""

    requests: frozenset[RequestKey] = frozenset()
    trees: frozenset[int] = frozenset()
    units: frozenset[str] = frozenset()
    away: bool = False
    warm: bool = False
    everything: bool = False

    def __or__(self, later: Changes) -> Changes:
        """What differs over both."""
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


class ChangesNoted:
    """Gathers what differs until somebody takes it."""

    def __init__(self) -> None:
        self._requests: set[RequestKey] = set()
        self._trees: set[int] = set()
        self._units: set[str] = set()
        self._away = self._warm = self._everything = False

    def note(self, requests: Iterable[RequestKey], trees: Iterable[int], units: Iterable[str]) -> None:
        """Of these something differs from what was taken last."""
        self._requests.update(requests)
        self._trees.update(trees)
        self._units.update(units)
        if max(len(self._requests), len(self._trees), len(self._units)) > MAX_NAMED:
            self.note_everything()

    def note_away(self) -> None:
        """A device has come or gone."""
        self._away = True

    def note_warm(self) -> None:
        """What is kept lit differs."""
        self._warm = True

    def note_everything(self) -> None:
        """What differs is not known by name."""
        self._forget()
        self._everything = True

    def take(self) -> Changes:
        """What has come together since it was last taken."""
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
