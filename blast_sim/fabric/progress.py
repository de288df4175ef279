"""A progress bar over all cells that includes the progress of running cells."""

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
    """A progress bar for terminals. Several threads may report their cells."""

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
        """Add finished cells."""
        with self._lock:
            self._over += cells
            self._show()

    @contextmanager
    def under_way(self) -> Iterator[Callable[[float], None]]:
        """Show a cell as running during a `with` block; call the yielded function with its progress (0 to 1)."""
        name = object()

        def advance(share: float) -> None:
            with self._lock:
                self._shares[name] = share
                self._show()

        try:
            yield advance
        finally:
            with self._lock:
                self._shares.pop(name, None)

    def _show(self) -> None:
        self._shown.n = self._over + sum(self._shares.values())
        self._shown.refresh()
