"""A bar over all cells, in which those that are under way count by the share of them that is over."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import NoReturn

from tqdm import tqdm

FORMAT = "{l_bar}{bar}| {n:.2f}/{total} [{elapsed}<{remaining}]"


class Bar:
    """Shown while there is a terminal to show it on. Several threads may tell of their cells."""

    def __init__(self, cells: int) -> None:
        self._lock = threading.Lock()
        self._over = 0.0
        self._shares: dict[object, float] = {}
        self._shown: tqdm[NoReturn] = tqdm(
            total=cells, desc="cells", disable=not sys.stderr.isatty(), file=sys.stderr, leave=False, bar_format=FORMAT
        )

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._shown.close()

    def finished(self, cells: float) -> None:
        """So many more cells are over."""
        with self._lock:
            self._over += cells
            self._show()

    @contextmanager
    def under_way(self) -> Iterator[Callable[[float], None]]:
        """Within the block a cell is under way; what is yielded is to be told the share of it that is over."""
        name = object()

        def heard(share: float) -> None:
            with self._lock:
                self._shares[name] = share
                self._show()

        try:
            yield heard
        finally:
            with self._lock:
                self._shares.pop(name, None)

    def _show(self) -> None:
        self._shown.n = self._over + sum(self._shares.values())
        self._shown.refresh()
