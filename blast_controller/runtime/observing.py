"""Notification of all observers on the runtime's thread; the failure of one does not affect the others."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from blast_controller.core.controller import Core
from blast_controller.core.model.commands import Command
from blast_controller.core.model.events import Event
from blast_controller.core.observer import Observer
from blast_controller.core.snapshot.changes import Changes
from blast_controller.core.snapshot.snapshot import Snapshot

log = logging.getLogger(__name__)

_INHERITED = {name: method for name, method in vars(Observer).items() if name.startswith("on_")}


class Observers(Observer):
    """Several observers as one that never raises: an observer must not stop the runtime.

    Only overridden methods are called: a grant causes dozens of notifications, and most observers ignore most of them.
    """

    def __init__(self, observers: Iterable[Observer]) -> None:
        self._set(list(observers))

    def _set(self, observers: list[Observer]) -> None:
        self._observers = observers
        self._overriding = {name: [one for one in observers if _overrides(one, name)] for name in _INHERITED}

    def on_event(self, event: Event, core: Core) -> None:
        """Notify all observers like `Observer.on_event`."""
        self._notify("on_event", event, core)

    def on_command(self, command: Command) -> None:
        """Notify all observers like `Observer.on_command`."""
        self._notify("on_command", command)

    def on_decision(self, seconds: float) -> None:
        """Notify all observers like `Observer.on_decision`."""
        self._notify("on_decision", seconds)

    def on_commit(self, records: int, seconds: float) -> None:
        """Notify all observers like `Observer.on_commit`."""
        self._notify("on_commit", records, seconds)

    def on_published(self, snapshot: Snapshot, changes: Changes) -> None:
        """Notify all observers like `Observer.on_published`."""
        self._notify("on_published", snapshot, changes)

    def _notify(self, name: str, *arguments: object) -> None:
        for observer in self._overriding[name]:
            try:
                getattr(observer, name)(*arguments)
            except Exception:
                log.exception("%s failed and is disabled", type(observer).__name__)
                self._set([one for one in self._observers if one is not observer])


def _overrides(observer: Observer, name: str) -> bool:
    inherited = _INHERITED[name]
    return getattr(type(observer), name, inherited) is not inherited
