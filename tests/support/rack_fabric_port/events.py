"""Events of a trace, and what is foretold of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

from blast_sim.fabric.trace import Kind, read_trace

T = TypeVar("T")


class Event(NamedTuple):
    """A record of a trace."""

    time: int
    kind: int
    flags: int
    port: int
    frame: int
    voq: int
    value: int
    extra: int


class Disagreement(AssertionError):
    """The trace holds what the paper rules out."""


@dataclass(frozen=True, slots=True)
class Effect:
    """An event that must follow; what is None is not foretold. `extras` are as good as one another."""

    kind: Kind
    frame: int | None = None
    voq: int | None = None
    value: int | None = None
    extras: frozenset[int] | None = None

    def matches(self, event: Event) -> bool:
        return (
            event.kind == self.kind
            and self.frame in (None, event.frame)
            and self.voq in (None, event.voq)
            and self.value in (None, event.value)
            and (self.extras is None or event.extra in self.extras)
        )


def demand(condition: bool, event: Event, sentence: str) -> None:
    """Raise Disagreement unless the paper's sentence holds."""
    if not condition:
        raise Disagreement(f"{sentence}: {told(event)}")


def known(numbered: Mapping[int, T], number: int, event: Event) -> T:
    """What has this number. Raises Disagreement: nothing has."""
    demand(number in numbered, event, f"{number} is unknown")
    return numbered[number]


def told(event: Event) -> str:
    """An event for people."""
    return f"{Kind(event.kind).name} {event._asdict()}"


def events_of(path: Path) -> Iterator[Event]:
    """All records of a trace."""
    for records in read_trace(path):
        yield from map(Event._make, records.tolist())
