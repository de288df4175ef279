"""What a command says and does when it is told to end while the controller is at work for it."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def telling_when_interrupted(sentence: str) -> Iterator[None]:
    """Say what is left undone, or goes on, when Ctrl-C ends what is in this block."""
    try:
        yield
    except KeyboardInterrupt:
        sys.stderr.write(f"blast: interrupted: {sentence}\n")
        raise


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Make SIGTERM and SIGHUP a SystemExit in this block, so that what has to be given back is."""
    # Nobody but the main thread is told of signals.
    numbers = (signal.SIGTERM, signal.SIGHUP) if threading.current_thread() is threading.main_thread() else ()
    before = {number: signal.signal(number, _end) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)
