"""What the comparison asks of a way to push weights."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from transport_bed.program import Program
from transport_bed.run import Run

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"
SMALL, WEIGHTS = "small", "weights"
"""What is pushed: a first megabyte of the weights, which opens connections and warms caches, then all of them."""


@dataclass(frozen=True)
class Setting:
    """What the ways are given: the controller's address on the sender's host, and interpreters with their libraries."""

    thrift: str
    torch_python: Path
    ray_python: Path


@dataclass(frozen=True)
class Push:
    """When the sender called (time.monotonic), when each receiver had read all it got, and what that added up to."""

    began: float
    held: Sequence[float]
    digests: Sequence[int]
    notes: Mapping[str, Any]


class Way(ABC):
    """Programs on all hosts of a run, ready to push."""

    name: ClassVar[str]
    """For options and JSON."""
    title: ClassVar[str]
    """For tables."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting

    @property
    def missing(self) -> str:
        """What the machine lacks for it, and how that is had; empty if nothing."""
        return ""

    @abstractmethod
    def prepare(self, run: Run) -> None:
        """Start the programs and wait until they are ready. Raises RunFailed."""

    @abstractmethod
    def push(self, run: Run, what: str) -> Push:
        """Push `SMALL` or `WEIGHTS`, and wait until every receiver has read every byte. Raises RunFailed."""


def await_word(program: Program, event: str, deadline: float) -> dict[str, Any]:
    """The JSON line with this event. Raises RunFailed."""
    while True:
        _, line = program.next_line(deadline)
        if line.startswith("{"):
            said: dict[str, Any] = json.loads(line)
            if said.get("event") == event:
                return said


def push_by_order(sender: Program, receivers: Sequence[Program], what: str, deadline: float) -> Push:
    """Where every host has a program that takes orders: the receivers are told first. Raises RunFailed."""
    for program in (*receivers, sender):
        program.tell(what)
    sent = await_word(sender, "sent", deadline)
    held = [await_word(program, "held", deadline) for program in receivers]
    return Push(sent["began"], [one["at"] for one in held], [one["digest"] for one in held], sent.get("notes", {}))
