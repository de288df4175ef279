"""Termination of a process that owns a lab: it runs every `finally`, so that the lab is removed too."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

_REQUESTS = (signal.SIGTERM, signal.SIGHUP)
_FAULT = signal.SIGUSR1
"""The signal by which another thread interrupts the main one in any wait."""
_HEARING_SECONDS = 1.0


def end_in_order(status: int, *more: signal.Signals) -> None:
    """Let SIGTERM, SIGHUP and `more` raise SystemExit(`status`) in the main thread from now on.

    The first one counts: a second one must not interrupt the removal that the first began.
    """
    numbers = (*_REQUESTS, *more)
    for number in numbers:
        signal.signal(number, _leaving(status, numbers))


def ending_by_fault(status: int) -> Callable[[str], None]:
    """Return a function that any thread may call to print an error and end the main thread in order."""
    signal.signal(_FAULT, _leaving(status, _REQUESTS))

    def end(sentence: str) -> None:
        sys.stderr.write(f"blast lab: {sentence}\n")
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, _FAULT)

    return end


@contextmanager
def hearing_signals() -> Iterator[None]:
    """Handle signals promptly while the block reads lines from a terminal.

    The read waits in C: a signal just before it would be handled at the next key only. So the wait is interrupted
    periodically, and Python handles pending signals.
    """
    before = signal.signal(signal.SIGALRM, lambda _number, _frame: None)
    signal.setitimer(signal.ITIMER_REAL, _HEARING_SECONDS, _HEARING_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def _leaving(status: int, requests: Sequence[signal.Signals]) -> Callable[[int, object], NoReturn]:
    def leave(_number: int, _frame: object) -> NoReturn:
        for number in (*requests, _FAULT):
            signal.signal(number, signal.SIG_IGN)
        raise SystemExit(status)

    return leave
