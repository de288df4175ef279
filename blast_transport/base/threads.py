"""Threads that strangers cause: where the system gives no more of them, that is a failure of one connection."""

from __future__ import annotations

import threading
from collections.abc import Callable

from blast_transport.base.errors import NoThreadError


def start_thread(name: str, work: Callable[..., object], *arguments: object) -> threading.Thread:
    """A daemon thread that works. Raises NoThreadError."""
    thread = threading.Thread(target=work, args=arguments, name=name, daemon=True)
    start(thread)
    return thread


def start(thread: threading.Thread) -> None:
    """Start a thread that was made before. Raises NoThreadError."""
    try:
        thread.start()
    except (RuntimeError, MemoryError) as error:
        raise NoThreadError(f"this host gives the process no more threads ({error}); try again later") from error
