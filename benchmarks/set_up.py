"""Environments of measurements, which are set up in steps and torn down in reverse order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import ExitStack
from typing import Self


class SetUp(ABC):
    """A context manager that undoes the previous steps if one of its steps fails."""

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            self._set_up(undo)
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    @abstractmethod
    def _set_up(self, undo: ExitStack) -> None:
        """Take all steps, and add the reverse of each to `undo`."""
