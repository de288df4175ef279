"""Waits until it may lead, leads, and notices when it does no longer."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from blast_controller.store.errors import DiskFullError, JournalError, LockLostError, StoreUnreachableError
from blast_controller.store.interface import Loaded, Store

log = logging.getLogger(__name__)

LOOK = 0.05
"""Seconds between two looks at whether we still lead."""
AGAIN = 0.2
"""Seconds between two tries to open the journal."""
PUBLISH_EVERY = 20
"""Looks between two reports of the devices that we reach."""
REPORTS_TO_STEP_DOWN = 3
"""The number of consecutive reports that another controller reaches more devices."""


class LeaderCandidates(Protocol):
    """The controllers that could lead. All methods may raise JournalError."""

    def publish(self, reached: int) -> None:
        """Publish the number of devices connected to this controller."""

    def others(self) -> Mapping[str, int]:
        """Return the number of devices that each other candidate reaches, by address."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """Callbacks of the daemon.

    `lead` takes over as the leader; `depose` steps down for a reason, after which the controller may become a candidate
    again; `die` ends the process after an unexpected error.
    """

    lead: Callable[[Loaded], None]
    depose: Callable[[str], None]
    die: Callable[[BaseException], None]


class Candidate:
    """A thread that campaigns for leadership.

    `holds_leadership` uses a clock only; `reached` counts the devices connected to this controller.
    """

    def __init__(
        self,
        store: Store,
        rivals: LeaderCandidates,
        hooks: Hooks,
        holds_leadership: Callable[[], bool],
        reached: Callable[[], int],
    ) -> None:
        self._store = store
        self._rivals = rivals
        self._hooks = hooks
        self._holds_leadership = holds_leadership
        self._reached = reached
        self._fewer = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="candidate", daemon=True)
        self._publisher = threading.Thread(target=self._publish_devices, name="candidate's devices", daemon=True)

    def start(self) -> None:
        """Wait to lead."""
        self._thread.start()
        self._publisher.start()

    def stop(self) -> None:
        """Look no more."""
        self._ended.set()

    def _run(self) -> None:
        try:
            self._hooks.lead(self._opened())
        except Exception as error:  # noqa: BLE001 - a leader that cannot decide must not block other candidates
            if not self._ended.is_set():
                self._hooks.die(error)
            return
        while not self._ended.wait(LOOK):
            if not self._holds_leadership():
                self._hooks.depose("its leadership expired")
                return

    def _opened(self) -> Loaded:
        """Open the journal once there is no other leader; retry while its backend is unreachable, full, or too slow.

        Raises JournalError for other faults, and after `stop`.
        """
        while True:
            try:
                loaded = self._store.open()
            except (StoreUnreachableError, DiskFullError) as fault:
                log.warning("this controller cannot become the leader yet: %s", fault)
                if self._ended.wait(AGAIN):
                    raise
                continue
            if self._holds_leadership():
                return loaded
            # Another controller may lead by now: a slow journal has answered after the end of the term.
            log.warning("this controller cannot become the leader yet: its leadership expired during the loading")
            self._store.close()

    def _publish_devices(self) -> None:
        while not self._ended.wait(LOOK * PUBLISH_EVERY):
            try:
                self._rivals.publish(self._reached())
                if self._holds_leadership() and self._is_worse_off(self._rivals.others()):
                    self._hooks.depose("another controller reaches more of the devices")
                    return
            except LockLostError as fault:
                log.warning("%s", fault)
            except JournalError as fault:
                log.warning("the list of reachable devices could not be published to the other controllers: %s", fault)

    def _is_worse_off(self, others: Mapping[str, int]) -> bool:
        self._fewer = self._fewer + 1 if max(others.values(), default=0) > self._reached() else 0
        return self._fewer >= REPORTS_TO_STEP_DOWN
