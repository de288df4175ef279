"""Interruption of commands by signals during a call."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def report_interrupt(sentence: str) -> Iterator[None]:
    """Print the state that remains if Ctrl-C ends the block."""
    try:
        yield
    except KeyboardInterrupt:
        sys.stderr.write(f"blast: interrupted: {sentence}\n")
        raise


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Raise SystemExit in the block on SIGTERM and SIGHUP, so that resources are released."""
    # Only the main thread handles signals.
    numbers = (signal.SIGTERM, signal.SIGHUP) if threading.current_thread() is threading.main_thread() else ()
    before = {number: signal.signal(number, _end) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)
