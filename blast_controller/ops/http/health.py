"""Liveness (its threads run) and readiness (it can grant requests) of the controller."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass

from blast_controller.core.model.identifiers import DatapathId
from blast_controller.runtime.runtime import Runtime

ANSWER_TIMEOUT = 2.0
"""Seconds for the deciding thread to come to a new piece of work."""


@dataclass(frozen=True, slots=True)
class Readiness:
    """Why light cannot be given, a sentence each; and how many of the devices are connected."""

    faults: tuple[str, ...]
    optical_switches: tuple[int, int]
    tors: tuple[int, int]


class Health:
    """Checks a runtime. `is_standby` returns why another controller decides; None: this one does."""

    def __init__(self, runtime: Runtime, is_standby: Callable[[], str | None] = lambda: None) -> None:
        self._runtime = runtime
        self._is_standby = is_standby
        self._lock = threading.Lock()
        self._sign: Future[None] | None = None

    async def lives(self) -> bool:
        """Return true if the deciding thread responds; concurrent queries share one check."""
        with self._lock:
            if self._sign is None or self._sign.done():
                sign: Future[None] = Future()
                self._sign = sign
                # Set at execution: settled results wait for the journal, whose disk may be full.
                self._runtime.call(lambda context: sign.set_result(None))
            waiting = asyncio.wrap_future(self._sign)
        try:
            await asyncio.wait_for(asyncio.shield(waiting), ANSWER_TIMEOUT)
        except TimeoutError:
            return False
        return True

    def readiness(self) -> Readiness:
        """Return the current readiness."""
        snapshot = self._runtime.snapshot
        switches = snapshot.fabric.switches
        tors = {rack.datapath for rack in snapshot.fabric.racks.values()}
        up = sum(name not in snapshot.away for name in switches)
        return Readiness(tuple(self._faults()), (up, len(switches)), (sum(map(self._is_up, tors)), len(tors)))

    def _is_up(self, datapath: DatapathId) -> bool:
        return datapath not in self._runtime.snapshot.away

    def _faults(self) -> Iterator[str]:
        snapshot = self._runtime.snapshot
        if (other := self._is_standby()) is not None:
            yield other
        if self._runtime.safe_mode is not None:
            yield self._runtime.safe_mode
        if self._runtime.store_fault is not None:
            yield f"The journal cannot be written: {self._runtime.store_fault}"
        yield from (
            f"{name} is disconnected: {snapshot.away[name]}"
            for name in snapshot.fabric.switches
            if name in snapshot.away
        )
        if not any(self._is_up(rack.datapath) for rack in snapshot.fabric.racks.values()):
            yield "No ToR is connected."
