"""A phase that goes along a pipeline: who stands where, how long a node waits, and what it tells its session."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from blast_transport.base.errors import WrongInputError
from blast_transport.wire.pipeline_bounds import NODE_TIMEOUT


class Member(NamedTuple):
    """A node of the chain and where it accepts connections; port 0: it accepts none (a source without a listener)."""

    name: str
    host: str
    port: int


_BEATS = 5
"""Signs of life in the shortest silence."""


@dataclass(frozen=True, slots=True)
class PipelineTimings:
    """Seconds that a node waits.

    `heartbeat`: between two signs of life to its neighbors. `silence`: without one from its successor before that is
    dead. `answer`: for a new successor's GET. `retry`: before it tries one again that refuses, and may just not have
    heard of the phase yet. `orphan`: without a word from any predecessor before it gives up. `fetch`: without a byte
    from the source that was asked for some. `linger`: after the report has passed it, for a predecessor whose own
    predecessor died. `slow`: over which a rate is measured. `farewell`: for the last words on a connection.
    """

    heartbeat: float = 0.2
    silence: float = NODE_TIMEOUT
    answer: float = NODE_TIMEOUT
    retry: float = 0.05
    orphan: float = 30.0
    fetch: float = 5.0
    linger: float = 15.0
    slow: float = 1.5
    farewell: float = 0.5

    @property
    def probe(self) -> float:
        """The last seconds of a silence, in which those behind the silent one are probed: they may be as dead."""
        return self.silence / 2

    @classmethod
    def of(cls, silence: float) -> PipelineTimings:
        """Those of nodes that take a neighbor for dead after so many seconds of silence."""
        return cls(min(cls().heartbeat, silence / _BEATS), silence, silence)


@dataclass(frozen=True, slots=True)
class PipelinePhase:
    """From block `first_block` on the data goes along `chain`, the source first; we are the one at `index`.

    `token` lets the members in. A successor that takes fewer than `slowest_rate` bytes/s is excluded; 0: none is.
    `buffer`: bytes of what cannot be read again that a node keeps for those after it; 0: as many as it likes.
    Raises WrongInputError for a chain that cannot be.
    """

    session: int
    number: int
    token: bytes
    first_block: int
    chain: tuple[Member, ...]
    index: int
    timings: PipelineTimings = field(default_factory=PipelineTimings)
    slowest_rate: float = 0.0
    buffer: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.index < len(self.chain):
            raise WrongInputError(f"place {self.index} is not in a chain of {len(self.chain)}")
        if len({member.name for member in self.chain}) < len(self.chain):
            raise WrongInputError("a node stands twice in the chain; name each once")

    def place(self, name: str) -> int | None:
        """Where this node stands, None if it is not a member."""
        return next((place for place, member in enumerate(self.chain) if member.name == name), None)


class Outcome(Enum):
    """How a node's part in a phase ended."""

    COMPLETE = auto()
    """It holds everything up to where the phase ended, and those after it were served."""
    QUIT = auto()
    """The user interrupted the transfer."""
    FORGOTTEN = auto()
    """Nobody holds any more what it needs."""
    EXCLUDED = auto()
    """The others go on without it: it was too slow, or seemed dead."""
    STOPPED = auto()
    """Its own session stopped it."""
    FAILED = auto()
    """It could go on no more: its store, its source, or every neighbor failed."""


@dataclass(frozen=True, slots=True)
class Progress:
    """All bytes before `position` are held (at the source: have arrived at its successor)."""

    position: int


@dataclass(frozen=True, slots=True)
class Lost:
    """A node was given up by us; it is skipped, unless `reason` tells that the rest of the chain went with it."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Drained:
    """The phase ends at byte `position`, and all before it is here (at the source: at everyone left in the chain)."""

    position: int


@dataclass(frozen=True, slots=True)
class Reported:
    """The report: every node that the chain lost, with the reason."""

    failed: dict[str, str]


@dataclass(frozen=True, slots=True)
class Ended:
    """The last event of all."""

    outcome: Outcome
    reason: str = ""


@dataclass(frozen=True, slots=True)
class StoreFailed:
    """Our own store takes no more, by whatever transport; said before any other node hears that we leave."""

    reason: str


PipelineEvent = Progress | Lost | Drained | Reported | StoreFailed | Ended
