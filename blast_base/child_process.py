"""Child processes that no signal leaves behind."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any


@contextmanager
def child_process(
    command: Sequence[str], end: Callable[[subprocess.Popen[bytes]], None], **options: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command in a session of its own until the block ends, and then `end` it.

    A thread starts it, because the main one may get the exception of a signal handler between the fork and the end of
    `Popen`, when nothing knows of the process yet. Raises what `Popen` raises.
    """
    started: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        started.append(subprocess.Popen(command, start_new_session=True, **options))

    try:
        with ThreadPoolExecutor(1, "starting a process") as starter:
            starter.submit(start).result()
        yield started[0]
    finally:
        for process in started:
            end(process)
