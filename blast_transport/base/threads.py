"""Threads that clients cause: if the system provides no more of them, only one connection fails."""

from __future__ import annotations

import threading
from collections.abc import Callable

from blast_transport.base.errors import NoThreadError


def start_thread(name: str, work: Callable[..., object], *arguments: object) -> threading.Thread:
    """Start a daemon thread. Raise NoThreadError."""
    thread = threading.Thread(target=work, args=arguments, name=name, daemon=True)
    start(thread)
    return thread


def start(thread: threading.Thread) -> None:
    """Start a thread that was made before. Raises NoThreadError."""
    try:
        thread.start()
    except (RuntimeError, MemoryError) as error:
        raise NoThreadError(f"this host has no more threads for the process ({error}); try again later") from error
