"""What the comparison asks of a tool."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from transport_bed.run import Run


class Tool(ABC):
    """A way to bring a file to all receivers."""

    name: ClassVar[str]
    """For options and JSON."""
    title: ClassVar[str]
    """For tables: what it is, how it is run."""
    programs: ClassVar[tuple[str, ...]] = ()
    """Those of the folder `programs` that have to be compiled for it."""
    carries: ClassVar[bool] = True
    """Whether it really brings the file."""
    commands: ClassVar[tuple[str, ...]] = ()
    """Programs of the machine that it needs."""

    @property
    def missing(self) -> list[str]:
        """Those of its programs that the machine lacks."""
        return [command for command in self.commands if shutil.which(command) is None]

    @abstractmethod
    def prepare(self, run: Run) -> None:
        """Start the receivers and wait until they are ready. Raises RunFailed."""

    @abstractmethod
    def send(self, run: Run) -> tuple[float, dict[str, Any]]:
        """Start the sender and wait until every receiver has the whole file; when that was, and what else it said.

        Raises RunFailed.
        """
