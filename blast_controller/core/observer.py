"""Who looks on at a core that runs: told what it takes, decides and shows. It needs to heed only what it is for."""

from __future__ import annotations

from blast_controller.core.controller import Core
from blast_controller.core.model.commands import Command
from blast_controller.core.model.events import Event
from blast_controller.core.snapshot.changes import Changes
from blast_controller.core.snapshot.snapshot import Snapshot


class Observer:
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
