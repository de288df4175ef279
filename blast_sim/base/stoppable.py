"""Work that Ctrl-C ends although a solver does not look up from it: its C++ returns when it is done."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")

INTERRUPTED = 130


def stoppable(work: Callable[[], T]) -> T:
    """Do the work in a thread of its own, and end the whole process with status 130 at Ctrl-C: the thread cannot be.

    Only for work that leaves nothing behind when it is cut off. Raises what the work raises.
    """
    outcome = Future[T]()
    try:
        threading.Thread(target=_do, args=(work, outcome), daemon=True).start()
        return outcome.result()
    except KeyboardInterrupt:
        if outcome.done():
            raise
        sys.stdout.flush()
        # An orderly end would destroy what the solver works with.
        os._exit(INTERRUPTED)


def _do(work: Callable[[], T], outcome: Future[T]) -> None:
    try:
        outcome.set_result(work())
    except BaseException as error:  # noqa: BLE001 - it is raised in the thread that waits
        outcome.set_exception(error)
