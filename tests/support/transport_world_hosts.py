"""The hosts and chains of a simulated session (`transport_world`), and what befalls them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from blast_transport.session.receiver_core import ReceiverCore
from blast_transport.store.memory_target import MemoryTarget
from blast_transport.store.store import Store
from tests.support.transport_data import InOrder

FOREVER = float("inf")
EVER = ((0.0, FOREVER),)
Spans = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Faults:
    """What the light does to a receiver's copy: shares of the datagrams."""

    loss: float = 0.0
    duplication: float = 0.0
    reordering: float = 0.0
    corruption: float = 0.0


@dataclass
class Host:
    """A receiver. `up` and `frozen` say when; `pace` is seconds for a block; `early`: it feeds a command."""

    name: str
    faults: Faults = Faults()
    up: Spans = EVER
    frozen: Spans = ()
    pace: float = 0.0
    early: bool = False
    buffer: int = 1 << 30
    core: ReceiverCore | None = None
    store: Store | None = None
    disk: dict[int, bytes] = field(default_factory=dict)
    inbox: deque[tuple[str, object]] = field(default_factory=deque)
    free_at: float = 0.0
    wakes_at: float = 0.0
    result: bytes | None = None
    life: int = 0
    line: int = 0
    queued: int = 0
    listens: bool = False
    nacked: int = 0
    rushed: int = 0
    complete_at: float = FOREVER

    @property
    def data(self) -> bytes:
        assert self.store is not None
        target = self.store.target
        assert isinstance(target, MemoryTarget | InOrder)
        return bytes(target.data)

    def stands_still(self, now: float) -> float:
        """Until when it is frozen; 0 if it is not."""
        return max((stop for start, stop in self.frozen if start <= now < stop), default=0.0)


@dataclass
class Chain:
    """A pipeline at work: blocks from `first` to before `stop` to its `members`; it breaks before `broken_at`.

    A member is told with its life: who comes back is none any more.
    """

    first: int
    members: dict[str, int]
    broken_at: float
    brought: int
    stop: int | None = None
    over: bool = False
