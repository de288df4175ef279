"""Observers of a running core: notified of its events, commands and decisions. Methods are optional."""

from __future__ import annotations

from blast_controller.core.controller import Core
from blast_controller.core.model.commands import Command
from blast_controller.core.model.events import Event
from blast_controller.core.snapshot.changes import Changes
from blast_controller.core.snapshot.snapshot import Snapshot


class Observer:
    """An observer of the core. The core waits for it, so it must only take notes. One that raises is disabled."""

    def on_event(self, event: Event, core: Core) -> None:
        """Handle an event that the core took; its decision may follow later."""

    def on_command(self, command: Command) -> None:
        """Handle a command that was executed after its records were made durable."""

    def on_decision(self, seconds: float) -> None:
        """Handle the end of a decision with its duration in seconds."""

    def on_commit(self, records: int, seconds: float) -> None:
        """Handle a commit with its number of records and the seconds spent waiting for the disk."""

    def on_published(self, snapshot: Snapshot, changes: Changes) -> None:
        """Handle a new published snapshot with its differences from the previous one."""
