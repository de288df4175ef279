"""Control of the garbage collector, so that it does not stop the controller.

By default Python traverses all live objects again and again as their number grows: with many clients this took a second
at a time, in which no client was answered. Here each object is traversed once, soon after its creation, and all objects
only rarely. Little garbage is missed meanwhile: neither calls nor connections leave reference cycles.
"""

from __future__ import annotations

import gc
import threading
import time

from blast_controller.process.heap import give_back

COLLECT_AFTER = 2_000
"""Objects created, beyond those freed, between two collections of young objects: some milliseconds each.

Replacements of old objects are not counted but traversed: there may be ten times as many.
"""
MIN_SECONDS, SHARE = 60.0, 1e-4
"""Seconds between two full collections, and their maximum share of all time.

Work that waits during a collection leaves a peak in memory, which costs more than the few cycles found.
"""


class GarbageCollection:
    """Short looks as objects are made, long ones now and then; from `start` to `stop`, for the whole process."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="garbage", daemon=True)
        self._before = gc.get_threshold()

    def start(self) -> None:
        """Freeze all existing objects."""
        gc.collect()
        gc.freeze()
        gc.set_threshold(COLLECT_AFTER)
        gc.callbacks.append(_keep_survivors)
        self._thread.start()

    def stop(self) -> None:
        """Restore the previous settings. No effect without `start`."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()
            gc.callbacks.remove(_keep_survivors)
            gc.set_threshold(*self._before)
            gc.unfreeze()

    def _run(self) -> None:
        due = time.monotonic() + MIN_SECONDS
        while not self._stopped.wait(MIN_SECONDS):
            give_back()
            if time.monotonic() >= due:
                due = time.monotonic() + max(MIN_SECONDS, look_through_everything() / SHARE)


def look_through_everything() -> float:
    """Run a full collection; return the seconds for which the process stopped."""
    began = time.monotonic()
    gc.unfreeze()
    gc.collect()
    return time.monotonic() - began


def _keep_survivors(phase: str, _info: dict[str, int]) -> None:
    if phase == "stop":
        gc.freeze()
