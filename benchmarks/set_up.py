"""Environments of measurements: set up in steps, and torn down in reverse order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import ExitStack
from typing import Self


class SetUp(ABC):
    """A context manager; if one of its steps fails, the steps before are undone."""

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            self._set_up(undo)
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    @abstractmethod
    def _set_up(self, undo: ExitStack) -> None:
        """Take all steps, and add to `undo` what reverses each."""
