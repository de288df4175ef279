"""Phase along a pipeline: nodes, timeouts, and the events of a node for its session."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from blast_transport.base.errors import WrongInputError
from blast_transport.base.frozen_record import FrozenRecord
from blast_transport.wire.pipeline_bounds import NODE_TIMEOUT


class ChainMember(NamedTuple):
    """A node of the chain and where it accepts connections; port 0: it accepts none (a source without a listener)."""

    name: str
    host: str
    port: int


_BEATS = 5
"""Heartbeats within the shortest silence."""


class PipelineTimings(NamedTuple):
    """Timeouts in seconds.

    `heartbeat`: interval of heartbeats to the neighbors. `silence`: without a heartbeat before the successor counts as
    dead. `answer`: for a new successor's GET. `retry`: before a refusing node, which may not have the phase yet, is
    tried again. `orphan`: without a message of any predecessor before this node gives up. `fetch`: without a byte from
    the source that was requested. `linger`: after the report has passed, for a predecessor whose own predecessor died.
    `slow`: measuring time of a rate. `last_message`: for the last messages on a connection.
    """

    heartbeat: float = 0.2
    silence: float = NODE_TIMEOUT
    answer: float = NODE_TIMEOUT
    retry: float = 0.01
    orphan: float = 30.0
    fetch: float = 5.0
    linger: float = 15.0
    slow: float = 1.5
    last_message: float = 0.5

    @property
    def probe(self) -> float:
        """Return the last seconds of a silence, in which the nodes behind the silent one are probed."""
        return self.silence / 2

    @classmethod
    def of(cls, silence: float) -> PipelineTimings:
        """Return the timeouts of nodes that consider a neighbor dead after `silence` seconds."""
        return cls(min(cls().heartbeat, silence / _BEATS), silence, silence)


class PipelinePhase(FrozenRecord):
    """Phase along `chain`, the source first, from block `first_block` on; this node is at `index`.

    `token` lets the members in. A successor that takes fewer than `slowest_rate` bytes/s is excluded; 0: none is.
    `buffer`: bytes of what cannot be read again that a node keeps for those after it; 0: as many as it likes.
    Raises WrongInputError for a chain that cannot be.
    """

    session: int
    number: int
    token: bytes
    first_block: int
    chain: tuple[ChainMember, ...]
    index: int
    timings: PipelineTimings = PipelineTimings()
    slowest_rate: float = 0.0
    buffer: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.index < len(self.chain):
            raise WrongInputError(f"place {self.index} is not in a chain of {len(self.chain)}")
        if len({member.name for member in self.chain}) < len(self.chain):
            raise WrongInputError("a node stands twice in the chain; name each once")

    def place(self, name: str) -> int | None:
        """Return the position of this node, None if it is not a member."""
        return next((place for place, member in enumerate(self.chain) if member.name == name), None)


class NodeOutcome(Enum):
    """Outcome of a node's part in a phase."""

    COMPLETE = auto()
    """It holds everything up to where the phase ended, and those after it were served."""
    QUIT = auto()
    """The user interrupted the transfer."""
    FORGOTTEN = auto()
    """No node holds the data that it needs any more."""
    EXCLUDED = auto()
    """The other nodes continue without it: it was too slow, or seemed dead."""
    STOPPED = auto()
    """Its own session stopped it."""
    FAILED = auto()
    """It could not continue: its store, its source, or every neighbor failed."""


class PhaseProgress(FrozenRecord):
    """All bytes before `position` are held (at the source: have arrived at its successor)."""

    position: int


class NodeLost(FrozenRecord):
    """Another node was given up by this one.

    It is skipped, unless `reason` shows that the rest of the chain is lost with it.
    """

    name: str
    reason: str


class PhaseDrained(FrozenRecord):
    """The phase ends at byte `position`, and all before it is here (at the source: at everyone left in the chain)."""

    position: int


class Reported(FrozenRecord):
    """The report: every node that the chain lost, with the reason."""

    failed: dict[str, str]


class PhaseEnded(FrozenRecord):
    """The last event of all."""

    outcome: NodeOutcome
    reason: str = ""


class StoreFailed(FrozenRecord):
    """The own store of this node accepts no more data.

    This is reported before other nodes learn that it leaves.
    """

    reason: str


PipelineEvent = PhaseProgress | NodeLost | PhaseDrained | Reported | StoreFailed | PhaseEnded
