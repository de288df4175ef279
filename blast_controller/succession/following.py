"""Follows the controller that leads: what it has written is shown here, a little later."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

from blast_controller.store.errors import StoreFault, Unreachable
from blast_controller.store.interface import Loaded, Seen

log = logging.getLogger(__name__)

INTERVAL = 0.25
"""Seconds between two looks."""
SHARE = 0.1
"""Of our time, at most, goes into taking up what was written: with much in the journal, looks are farther apart."""


class Journal(Protocol):
    """What is followed. Both raise StoreFault."""

    def look(self) -> Seen:
        """How it stands."""

    def state(self) -> Loaded:
        """All that is in it."""


class Following:
    """A thread that looks again and again. `show` is given what has changed, `meet` the generation of each new leader.

    It is what readers are told by: `leader` and `age`.
    """

    def __init__(self, journal: Journal, show: Callable[[Loaded], None], meet: Callable[[int], None]) -> None:
        self._journal = journal
        self._show = show
        self._meet = meet
        self._seen = Seen(None, 0, -1)
        self._shown = -1
        self._as_of: float | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="following", daemon=True)

    def start(self) -> None:
        """Look, and go on looking, also where what keeps the journal is away. Raises other StoreFaults."""
        try:
            self._look()
        except Unreachable as fault:
            log.error("nothing can be told before the journal was read, which is tried again and again: %s", fault)
        self._thread.start()

    def stop(self) -> None:
        """Look no more; what was shown stays."""
        self._ended.set()

    def leader(self) -> str | None:
        """Where whoever leads is reached."""
        return self._seen.leader

    def age(self) -> float | None:
        """How many seconds ago, at most, what is shown was so; None before the first look."""
        return None if self._as_of is None else time.monotonic() - self._as_of

    def _run(self) -> None:
        pause = INTERVAL
        while not self._ended.wait(pause):
            began = time.monotonic()
            try:
                self._look()
            except StoreFault as fault:
                log.warning("the journal cannot be followed: %s", fault)
            except Exception:
                # What is told grows older, and says so; this controller may still have to lead.
                log.exception("what the leader has written cannot be shown")
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
