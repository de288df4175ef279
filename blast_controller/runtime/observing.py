"""Tells all who look on, on the runtime's thread, whatever becomes of one of them."""

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
    """Some observers as one, which raises nothing: whoever looks on must not stop those at work."""

    def __init__(self, observers: Iterable[Observer]) -> None:
        self._observers = list(observers)

    def on_event(self, event: Event, core: Core) -> None:
        """As `Observer.on_event`."""
        self._tell(lambda observer: observer.on_event(event, core))

    def on_command(self, command: Command) -> None:
        """As `Observer.on_command`."""
        self._tell(lambda observer: observer.on_command(command))

    def on_decision(self, seconds: float) -> None:
        """As `Observer.on_decision`."""
        self._tell(lambda observer: observer.on_decision(seconds))

    def on_commit(self, records: int, seconds: float) -> None:
        """As `Observer.on_commit`."""
        self._tell(lambda observer: observer.on_commit(records, seconds))

    def on_published(self, snapshot: Snapshot, changes: Changes) -> None:
        """As `Observer.on_published`."""
        self._tell(lambda observer: observer.on_published(snapshot, changes))

    def _tell(self, tell: Callable[[Observer], None]) -> None:
        for observer in list(self._observers):
            try:
                tell(observer)
            except Exception:
                log.exception("%s failed, and is told nothing any more", type(observer).__name__)
                self._observers.remove(observer)
