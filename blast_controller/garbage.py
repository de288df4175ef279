"""The collector of garbage, kept from stopping the controller.

By itself Python looks through all that lives, again and again as that grows: with what clients may hold here it took a
second at a time, in which nobody was answered. So each object is looked at once, soon after it was made, and everything
only now and then. Little is missed meanwhile: neither calls nor connections leave circles behind.
"""

from __future__ import annotations

import gc
import threading
import time

from blast_controller.heap import give_back

COLLECT_AFTER = 2_000
"""Objects made, beyond those freed, between two looks at those that are new: some milliseconds each.

What takes the place of an old object does not count, and is looked at all the same: ten times as many may have come.
"""
MIN_SECONDS, SHARE = 60.0, 1e-4
"""Between two looks at everything; and the share of all time that these may take.

What waits while everybody stands still leaves a peak in memory, which costs more than the few circles that are found.
"""


class GarbageCollection:
    """Short looks as objects are made, long ones now and then; from `start` to `stop`, for the whole process."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="garbage", daemon=True)
        self._before = gc.get_threshold()

    def start(self) -> None:
        """What is there now stays."""
        gc.collect()
        gc.freeze()
        gc.set_threshold(COLLECT_AFTER)
        gc.callbacks.append(_keep_survivors)
        self._thread.start()

    def stop(self) -> None:
        """As it was before. Without effect where it has not begun."""
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
    """Free every circle that nobody holds any more; for so many seconds the process stood still."""
    began = time.monotonic()
    gc.unfreeze()
    gc.collect()
    return time.monotonic() - began


def _keep_survivors(phase: str, _info: dict[str, int]) -> None:
    if phase == "stop":
        gc.freeze()
