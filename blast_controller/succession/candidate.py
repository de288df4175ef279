"""Waits until it may lead, leads, and notices when it does no longer."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from blast_controller.store.errors import DiskFull, Dispossessed, StoreFault, Unreachable
from blast_controller.store.interface import Loaded, Store

log = logging.getLogger(__name__)

LOOK = 0.05
"""Seconds between two looks at whether we still lead."""
AGAIN = 0.2
"""Seconds between two tries to open the journal."""
TELL = 20
"""Looks between two words about the devices that we reach."""
PATIENCE = 3
"""Words in a row that say that somebody else reaches more devices than we."""


class Rivals(Protocol):
    """The controllers that could lead. All methods may raise StoreFault."""

    def tell(self, reached: int) -> None:
        """So many devices have a connection to us."""

    def others(self) -> Mapping[str, int]:
        """By address, how many each of the others reaches."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """What the daemon does: begin to lead; end, because we do not lead any more (and may be a candidate again)."""

    lead: Callable[[Loaded], None]
    depose: Callable[[str], None]
    die: Callable[[BaseException], None]


class Candidate:
    """A thread. `still_leads` looks at a clock only; `reached` counts the devices that have a connection to us."""

    def __init__(
        self, store: Store, rivals: Rivals, hooks: Hooks, still_leads: Callable[[], bool], reached: Callable[[], int]
    ) -> None:
        self._store = store
        self._rivals = rivals
        self._hooks = hooks
        self._still_leads = still_leads
        self._reached = reached
        self._fewer = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="candidate", daemon=True)
        self._telling = threading.Thread(target=self._tell_of_devices, name="candidate's devices", daemon=True)

    def start(self) -> None:
        """Wait to lead."""
        self._thread.start()
        self._telling.start()

    def stop(self) -> None:
        """Look no more."""
        self._ended.set()

    def _run(self) -> None:
        try:
            self._hooks.lead(self._opened())
        except Exception as error:  # noqa: BLE001 - who leads and cannot decide must not keep others from it
            if not self._ended.is_set():
                self._hooks.die(error)
            return
        while not self._ended.wait(LOOK):
            if not self._still_leads():
                self._hooks.depose("its time as the leader has run out")
                return

    def _opened(self) -> Loaded:
        """The journal, once nobody else leads; what keeps it may be away then, or full. Raises StoreFault."""
        while True:
            try:
                return self._store.open()
            except (Unreachable, DiskFull) as fault:
                log.warning("this controller cannot lead yet: %s", fault)
                if self._ended.wait(AGAIN):
                    raise

    def _tell_of_devices(self) -> None:
        while not self._ended.wait(LOOK * TELL):
            try:
                self._rivals.tell(self._reached())
                if self._still_leads() and self._is_worse_off(self._rivals.others()):
                    self._hooks.depose("another controller reaches more of the devices")
                    return
            except Dispossessed as fault:
                log.warning("%s", fault)
            except StoreFault as fault:
                log.warning("others cannot be told which devices are reached: %s", fault)

    def _is_worse_off(self, others: Mapping[str, int]) -> bool:
        self._fewer = self._fewer + 1 if max(others.values(), default=0) > self._reached() else 0
        return self._fewer >= PATIENCE
