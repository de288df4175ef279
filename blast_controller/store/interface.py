"""The interface of stores for the runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from blast_controller.core.model.records import Body, Record

RESERVATION = "reservation"
"""The kind of record that may hold elements."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The contents of a store when it was opened.

    `epoch` counts the openings, this one included. `state` has for each kind its rows by key, in the order of their
    first insertion; a row that was removed and inserted again counts from its second insertion. `is_new` is true at the
    first start. `sequence` is that of the latest entry, if several controllers share the journal. `written` is the wall
    time of the latest entry before this opening, None if there is none.
    """

    epoch: int
    state: Mapping[str, Mapping[str, Body]]
    is_new: bool
    sequence: int = 0
    written: float | None = None

    def records(self) -> list[Record]:
        """Return all rows as records."""
        return [Record(kind, key, body) for kind, found in self.state.items() for key, body in found.items()]

    def of(self, kind: str) -> Mapping[str, Body]:
        """Return the rows of one kind."""
        return self.state.get(kind, {})


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of history. `at` is wall time in seconds since 1970, `body` None where a thing was forgotten.

    Sequences count from 1 without gaps, and are never used again.
    """

    sequence: int
    at: float
    epoch: int
    kind: str
    key: str
    note: str
    body: Body | None


@dataclass(frozen=True, slots=True)
class JournalPosition:
    """The state of a journal that another controller writes.

    `leader` is the leader's address, `generation` the number of its term (0: no leader), and `sequence` that of the
    latest entry.
    """

    leader: str | None
    generation: int
    sequence: int


class Store(Protocol):
    """Keeps the latest state of every thing, who holds which element, and a history.

    All methods may raise a JournalError. `last_commit_seconds` is how long the latest commit waited for the disk.
    """

    last_commit_seconds: float

    def open(self) -> Loaded:
        """Acquire the store, increment the epoch durably and return the contents."""

    def commit(self, records: Sequence[Record], at: float) -> None:
        """Write all records, in the order in which they happened, or none; durable on return.

        `at` is wall time in seconds since 1970 and goes into the history only. Raises DoubleHeldError and
        UnstorableError (ours), DiskFullError, DiskFailedError, JournalLockedError, DamagedJournalError.
        """

    def journal(self, after_sequence: int, limit: int) -> list[Entry]:
        """Read at most `limit` entries after `after_sequence`, oldest first; from any thread."""

    def compact(self, at: float) -> bool:
        """Drop a small batch of expired history; return true if there is more. From any thread."""

    def close(self) -> None:
        """Let go. Closing twice is allowed."""
