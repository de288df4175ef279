"""Keeps the history short in the background, away from the commits."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from blast_controller.core.model.age_clock import AgeClock
from blast_controller.store.errors import JournalError
from blast_controller.store.interface import Store

log = logging.getLogger(__name__)

INTERVAL = 1.0
"""Seconds between two looks at the store."""
PAUSE = 0.02
"""Seconds left to the commits between two batches."""


class Compactor:
    """A thread that compacts an open store until it is stopped; `fatal` receives unexpected exceptions."""

    def __init__(self, store: Store, fatal: Callable[[BaseException], None], interval: float = INTERVAL) -> None:
        self._store = store
        self._fatal = fatal
        self._interval = interval
        self._ages = AgeClock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="compactor", daemon=True)

    def start(self, written: float | None = None) -> None:
        """Begin; `written` is the wall time of the latest entry that the store held when it was opened."""
        self._ages = AgeClock(written)
        self._thread.start()

    def stop(self) -> None:
        """End after the batch in hand; to be called before the store is closed."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._stopped.wait(self._interval):
                self._compact()
        except Exception as error:  # noqa: BLE001  top of a thread
            self._fatal(error)

    def _compact(self) -> None:
        try:
            at = self._ages.now(time.time(), time.monotonic())
            while self._store.compact(at) and not self._stopped.wait(PAUSE):
                pass
        except JournalError as fault:
            # The disk is full or busy; failing commits report that more prominently.
            log.warning("compaction of the journal failed: %s", fault)
