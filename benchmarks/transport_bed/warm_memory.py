"""Memory for copies that the machine has used before.

A virtual machine gives free memory back to its host, and what comes again from there costs many times what writing
does: half a gigabyte a second was seen, less than fifteen links carry. So all that lies free is taken before the clock
starts, and given up while the copies grow, no faster than they need it.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from transport_bed import contents

_LEAST_FREE, _MOST_FREE = 1 << 30, 3 << 29
_STEP = 64 << 20
_PIECE = bytes(1 << 20)
_LOOK_SECONDS = 0.02


@contextmanager
def used_until_now(folder: Path, size: int) -> Iterator[None]:
    """So many bytes are in use in `folder`, which lies in memory, and free at once when the block ends.

    For runs that nothing paces, and whose processors are what is measured: there nobody may give memory up meanwhile.
    """
    path = folder / "used"
    try:
        with path.open("wb") as file:
            for start in range(0, size, len(_PIECE)):
                file.write(_PIECE[: size - start])
        yield
    finally:
        path.unlink(missing_ok=True)


class WarmMemory:
    """A file in `folder`, which lies in memory; a context manager. `fill` before every run."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "warm"
        self._size = 0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> WarmMemory:
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._halt()
        os.close(self._file)
        self._path.unlink()

    def fill(self) -> None:
        """Take what is free."""
        self._halt()
        while self._free() > _MOST_FREE:
            for start in range(self._size, self._size + _STEP, len(_PIECE)):
                os.pwrite(self._file, _PIECE, start)
            self._size += _STEP
        self._stop.clear()
        self._thread = threading.Thread(target=self._give, name="warm memory", daemon=True)
        self._thread.start()

    def _halt(self) -> None:
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._thread = None

    def _free(self) -> int:
        return min(contents.memory("MemFree"), shutil.disk_usage(self._path.parent).free)

    def _give(self) -> None:
        while not self._stop.wait(_LOOK_SECONDS):
            while self._size > 0 and self._free() < _LEAST_FREE:
                self._size -= _STEP
                os.ftruncate(self._file, self._size)
