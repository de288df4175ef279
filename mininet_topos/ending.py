"""How a process that owns a lab ends before its time: through every `finally` on the way, so that the lab goes too."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

_REQUESTS = (signal.SIGTERM, signal.SIGHUP)
_FAULT = signal.SIGUSR1
"""What another thread interrupts the main one with, whatever it waits for."""
_HEARING_SECONDS = 1.0


def end_in_order(status: int, *more: signal.Signals) -> None:
    """From now on SIGTERM, SIGHUP and these raise SystemExit(`status`) in the main thread.

    The first one counts: a second one must not interrupt the removal that the first began.
    """
    numbers = (*_REQUESTS, *more)
    for number in numbers:
        signal.signal(number, _leaving(status, numbers))


def ending_by_fault(status: int) -> Callable[[str], None]:
    """A function that any thread may call to say a sentence on standard error, and to end the main thread likewise."""
    signal.signal(_FAULT, _leaving(status, _REQUESTS))

    def end(sentence: str) -> None:
        sys.stderr.write(f"blast lab: {sentence}\n")
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, _FAULT)

    return end


@contextmanager
def hearing_signals() -> Iterator[None]:
    """While the block reads lines from a terminal, a signal is heard whenever it comes.

    Who reads there waits in C: a signal that came in the instant before would be noticed with the next key only. So the
    wait is interrupted now and then, and Python sees what else has come.
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
