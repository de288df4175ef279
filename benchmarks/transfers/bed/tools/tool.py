"""The interface of a tool that is compared."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

if TYPE_CHECKING:
    from benchmarks.transfers.bed.run import Run

Kind = TypeVar("Kind")
Sent = tuple[float, dict[str, Any]]
"""The time (time.monotonic) at which every receiver had the whole file, and the report of the tool."""


class Tool(ABC):
    """A way to send a file to all receivers."""

    name: ClassVar[str]
    """For options and JSON."""
    title: ClassVar[str]
    """For tables."""
    programs: ClassVar[tuple[str, ...]] = ()
    """Programs of the folder `programs` that must be compiled."""
    carries: ClassVar[bool] = True
    """True if the tool sends the file; False for a floor."""
    commands: ClassVar[tuple[str, ...]] = ()
    """Required programs of the machine."""

    @property
    def missing(self) -> list[str]:
        """The programs that are not installed."""
        return [command for command in self.commands if shutil.which(command) is None]

    @abstractmethod
    def prepare(self, run: Run) -> None:
        """Start the receivers and wait until they are ready. Raises RunFailedError."""

    @abstractmethod
    def send(self, run: Run) -> Sent:
        """Start the sender and wait until every receiver has the whole file. Raises RunFailedError."""


def derive(base: type[Kind], name: str, title: str, **attributes: object) -> type[Kind]:
    """Return a subclass with another name, title, and other class attributes."""
    return cast("type[Kind]", type(name, (base,), {"name": name, "title": title, **attributes}))
