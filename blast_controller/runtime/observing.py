"""Who looks on: told on the runtime's thread what the core has taken, and what has left it and is in force."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Protocol

from blast_controller.core.controller import Core
from blast_controller.core.model.commands import Command
from blast_controller.core.model.events import Event
from blast_controller.core.snapshot.changes import Changes
from blast_controller.core.snapshot.snapshot import Snapshot

log = logging.getLogger(__name__)


class Observer(Protocol):
    """Everybody waits while it looks: let it take a note and return. One that raises is told nothing any more."""

    def on_event(self, event: Event, core: Core) -> None:
        """The core has taken an event, on which it may not have decided yet."""

    def on_command(self, command: Command) -> None:
        """What belongs to a command is durable, and it has been carried out."""

    def on_decision(self, seconds: float) -> None:
        """The core has decided on all that it had taken, in so long."""

    def on_commit(self, records: int, seconds: float) -> None:
        """So many records are durable, and their commit waited so long for the disk."""

    def on_published(self, snapshot: Snapshot, changes: Changes) -> None:
        """Readers are shown this from now on, which differs so from what they were shown before."""


class Observers:
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
