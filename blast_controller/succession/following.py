"""Following of the leader: its writes are displayed here with a short delay."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

from blast_controller.store.errors import JournalError, StoreUnreachableError
from blast_controller.store.interface import JournalPosition, Loaded

log = logging.getLogger(__name__)

INTERVAL = 0.25
"""Seconds between two looks."""
SHARE = 0.1
"""Of our time, at most, goes into taking up what was written: with much in the journal, looks are farther apart."""


class Journal(Protocol):
    """The followed journal. Both methods raise JournalError."""

    def look(self) -> JournalPosition:
        """Return the state of the journal."""

    def state(self) -> Loaded:
        """Return all that is in it."""


class Following:
    """A thread that reads the journal repeatedly. `show` receives changes, `meet` the generation of each new leader.

    Readers use `leader` and `age`.
    """

    def __init__(self, journal: Journal, show: Callable[[Loaded], None], meet: Callable[[int], None]) -> None:
        self._journal = journal
        self._show = show
        self._meet = meet
        self._seen = JournalPosition(None, 0, -1)
        self._shown = -1
        self._as_of: float | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="following", daemon=True)

    def start(self) -> None:
        """Read the journal, and go on reading, also while its store is unreachable.

        Raises JournalError for all other faults, and the exceptions of `show` and `meet`.
        """
        try:
            self._look()
        except StoreUnreachableError as fault:
            log.error("the journal could not be read, retrying: %s", fault)
        self._thread.start()

    def stop(self) -> None:
        """Stop reading; the displayed state stays."""
        self._ended.set()

    def leader(self) -> str | None:
        """Return the leader's address."""
        return self._seen.leader

    def age(self) -> float | None:
        """Return the maximum age of the displayed state in seconds; None before the first read."""
        return None if self._as_of is None else time.monotonic() - self._as_of

    def _run(self) -> None:
        pause = INTERVAL
        while not self._ended.wait(pause):
            began = time.monotonic()
            try:
                self._look()
            except JournalError as fault:
                log.warning("following the journal failed: %s", fault)
            except Exception:
                # The displayed age grows; this controller may still have to take over.
                log.exception("the leader's state could not be loaded for display")
            pause = max(INTERVAL, (time.monotonic() - began) / SHARE)

    def _look(self) -> None:
        asked = time.monotonic()
        seen = self._journal.look()
        if seen.generation != self._seen.generation:
            self._meet(seen.generation)
        self._seen = seen
        if seen.sequence != self._shown:
            self._show(self._journal.state())
            self._shown = seen.sequence
        self._as_of = asked
