"""Notification of all observers on the runtime's thread; the failure of one does not affect the others."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from blast_controller.core.controller import Core
from blast_controller.core.model.commands import Command
from blast_controller.core.model.events import Event
from blast_controller.core.observer import Observer
from blast_controller.core.snapshot.changes import Changes
from blast_controller.core.snapshot.snapshot import Snapshot

log = logging.getLogger(__name__)


class Observers(Observer):
    """Several observers as one that never raises: an observer must not stop the runtime."""

    def __init__(self, observers: Iterable[Observer]) -> None:
        self._observers = list(observers)

    def on_event(self, event: Event, core: Core) -> None:
        """Notify all observers like `Observer.on_event`."""
        self._notify(lambda observer: observer.on_event(event, core))

    def on_command(self, command: Command) -> None:
        """Notify all observers like `Observer.on_command`."""
        self._notify(lambda observer: observer.on_command(command))

    def on_decision(self, seconds: float) -> None:
        """Notify all observers like `Observer.on_decision`."""
        self._notify(lambda observer: observer.on_decision(seconds))

    def on_commit(self, records: int, seconds: float) -> None:
        """Notify all observers like `Observer.on_commit`."""
        self._notify(lambda observer: observer.on_commit(records, seconds))

    def on_published(self, snapshot: Snapshot, changes: Changes) -> None:
        """Notify all observers like `Observer.on_published`."""
        self._notify(lambda observer: observer.on_published(snapshot, changes))

    def _notify(self, notify: Callable[[Observer], None]) -> None:
        for observer in list(self._observers):
            try:
                notify(observer)
            except Exception:
                log.exception("%s failed and is disabled", type(observer).__name__)
                self._observers.remove(observer)
