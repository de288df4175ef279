"""The last line that a process has written to its standard error, which is copied to this process's own."""

from __future__ import annotations

import os
import select
import threading
from contextlib import suppress

from blast_transport.base.threads import start_thread

_OURS = 2
_READ_BYTES = 4096
_KEPT_BYTES = 1024
_LONGEST = 200
_END_SECONDS = 0.5
"""Time in which the remaining output of an ended process is read."""
_LOOK_MS = 200.0
"""Within this time, the reader ends after the process."""


class StderrTail:
    """Reader of a process's standard error, which is `writer` and closed here. Raises NoThreadError."""

    def __init__(self) -> None:
        self._reader, self.writer = os.pipe()
        self._kept = b""
        self._over = threading.Event()
        self._closed = False
        try:
            start_thread("standard error", self._run)
        except BaseException:
            os.close(self._reader)
            os.close(self.writer)
            raise

    def after_end(self) -> str:
        """Return the last line of an ended process in printable form; empty if there is none."""
        self._over.wait(_END_SECONDS)
        lines = [line for line in self._kept.decode(errors="replace").splitlines() if line.strip()]
        shown = "".join(c if c.isprintable() else "?" for c in lines[-1].strip()) if lines else ""
        return shown[:_LONGEST]

    def close(self) -> None:
        """Stop reading; processes that still write get an error."""
        self._closed = True

    def _run(self) -> None:
        waiting = select.poll()
        waiting.register(self._reader, select.POLLIN)
        try:
            while not self._closed:
                if not waiting.poll(_LOOK_MS):
                    continue
                data = os.read(self._reader, _READ_BYTES)
                if not data:
                    return
                self._kept = (self._kept + data)[-_KEPT_BYTES:]
                with suppress(OSError):
                    os.write(_OURS, data)
        finally:
            self._over.set()
            os.close(self._reader)
