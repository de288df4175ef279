"""When the first piece of the file lies at a receiver: start-up is over, the transfer has begun."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

_LOOK_SECONDS = 0.02
_PIECE = 64 << 10
"""Less than any tool writes first, more than the notes that one may keep beside its copy."""
_BLOCK = 512
"""In which stat(2) counts what a file takes; its length may be set before anything is in it."""


class FirstPiece:
    """Watches folders in the background, a context manager; `called` is called once, with the moment in hand."""

    def __init__(self, folders: Sequence[Path], size: int, called: Callable[[], None]) -> None:
        self.moment: float | None = None
        """Of time.monotonic; None while there is nothing."""
        self.seen = 0
        """Bytes that the copy which is farthest had in that moment: some tools write late, and looking takes time."""
        self._folders, self._least, self._called = folders, min(size, _PIECE), called
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="first piece", daemon=True)

    def __enter__(self) -> FirstPiece:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(_LOOK_SECONDS):
            self.seen = max(map(_most, self._folders))
            if self.seen >= self._least:
                self.moment = time.monotonic()
                self._called()
                return

    def began(self, ended: float, size: int) -> float:
        """When the first byte came: as long before the first piece was seen as that took at the rate of the rest."""
        if self.moment is None:
            return ended
        rest = size - self.seen
        return self.moment - (ended - self.moment) * self.seen / rest if rest > 0 else self.moment


def _most(folder: Path) -> int:
    with os.scandir(folder) as entries:
        return max(map(_taken, entries), default=0)


def _taken(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_blocks * _BLOCK
    except FileNotFoundError:
        return 0
