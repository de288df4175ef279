"""Which transport brings the data on, and what is known of the way."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from blast_transport.base.errors import WrongInputError
from blast_transport.links.dialling import SOURCE
from blast_transport.transports.sight import PhaseMeasurement
from blast_transport.wire.groups import GroupRange
from blast_transport.wire.pipeline_bounds import (
    LARGEST_BUFFER,
    LONGEST_TIMEOUT,
    NODE_TIMEOUT,
    SHORTEST_TIMEOUT,
    SMALLEST_BUFFER,
)
from blast_transport.wire.transports import MULTICAST, OPTICAL, PIPELINE, TREES, UNICAST

QUEUE_BYTES, QUEUE_SECONDS = 1 << 20, 0.002
"""Default of the smallest queue on a path: the window never exceeds it. Faster ports have larger queues, and the window
has to hold the data that arrives while a credit passes through two programs, about a millisecond."""

MULTICAST_PORT = 9096
"""UDP port of multicast data: a fixed one, for firewalls."""
UNLIMITED = 1e12
"""Bits/s that no interface has."""
_MAX_HOPS, _MAX_DSCP = 255, 63
"""Fields of 8 bits (RFC 791, section 3.1) and of 6 bits (RFC 2474, section 3)."""


@dataclass(frozen=True, slots=True)
class TransportChoice:
    """One of the ways there are; `transport` is its name on the wire."""

    transport: ClassVar[str] = ""

    @property
    def window_bytes(self) -> int | None:
        """Return the bytes that the path holds, None if unknown."""
        return None


@dataclass(frozen=True, slots=True)
class OpticalChoice(TransportChoice):
    """Grant to multicast to `group`:`port` at `rate` bits/s on the wire, until a time.monotonic().

    `queue_bytes` is the smallest queue on the path, if known.
    """

    transport: ClassVar[str] = OPTICAL
    group: str
    port: int
    rate: float
    until: float = math.inf
    queue_bytes: int | None = None

    @property
    def window_bytes(self) -> int:
        """Return the smallest queue on the path of this light tree, as far as known."""
        return self.queue_bytes or max(QUEUE_BYTES, int(self.rate / 8 * QUEUE_SECONDS))


@dataclass(frozen=True, slots=True)
class OpticalPause(TransportChoice):
    """Pause until the next grant; receivers keep their data, and repairs continue."""


@dataclass(frozen=True, slots=True)
class MulticastChoice(TransportChoice):
    """Multicast over the packet network, to a group out of `groups`, by UDP `port`.

    `interface_address`: of the sender's interface, None for the one by which the receivers are reached. Datagrams pass
    at most `hops - 1` routers and have the class of service `dscp`. `max_rate` limits the rate on the wire, in bits/s.
    `otherwise` serves receivers that no group reaches, None: the default pipeline, for a failure of the interface none.
    `avoided` are groups on which earlier phases of the transfer found other senders. Raises WrongInputError for a
    value out of range.
    """

    transport: ClassVar[str] = MULTICAST
    groups: GroupRange = field(default_factory=GroupRange)
    port: int = MULTICAST_PORT
    interface_address: str | None = None
    hops: int = 1
    dscp: int = 0
    max_rate: float = UNLIMITED
    otherwise: TransportChoice | None = None
    avoided: frozenset[str] = field(default=frozenset(), compare=False)

    def __post_init__(self) -> None:
        if not 1 <= self.hops <= _MAX_HOPS:
            raise WrongInputError(f"a datagram passes from 1 to {_MAX_HOPS} links, not {self.hops}")
        if not 0 <= self.dscp <= _MAX_DSCP:
            raise WrongInputError(f"a class of service (DSCP) is from 0 to {_MAX_DSCP}, not {self.dscp}")


@dataclass(frozen=True, slots=True)
class Chain(TransportChoice):
    """Along a pipeline over the packet network, in this `order` of names (None: the natural order of the names).

    `slowest_rate` in bits/s excludes slower nodes; 0: none. A neighbor that is silent for `node_timeout` seconds is
    taken for dead. `buffer`: bytes of what cannot be read again (of a stream, or what a command was given) that a node
    keeps for those behind it; 0: as many as it likes. `without` are receivers that an earlier phase of the same
    transfer has taken out of the chain. Raises WrongInputError for what is out of bounds.
    """

    transport: ClassVar[str] = PIPELINE
    order: tuple[str, ...] | None = None
    slowest_rate: float = 0.0
    node_timeout: float = NODE_TIMEOUT
    buffer: int = 0
    without: frozenset[str] = field(default=frozenset(), compare=False)

    def __post_init__(self) -> None:
        if not SHORTEST_TIMEOUT <= self.node_timeout <= LONGEST_TIMEOUT:
            lower, upper = f"{SHORTEST_TIMEOUT:g}", f"{LONGEST_TIMEOUT:g}"
            raise WrongInputError(
                f"the time-out of a node must be from {lower} to {upper} s, not {self.node_timeout:g}"
            )
        if self.buffer and not SMALLEST_BUFFER <= self.buffer <= LARGEST_BUFFER:
            lower, upper = f"{SMALLEST_BUFFER >> 20}", f"{LARGEST_BUFFER >> 20}"
            raise WrongInputError(f"the buffer of a node must be from {lower} to {upper} MiB, not {self.buffer} bytes")


@dataclass(frozen=True, slots=True)
class Unicast(TransportChoice):
    """One copy to every receiver over its own connection."""

    transport: ClassVar[str] = UNICAST


@dataclass(frozen=True, slots=True)
class Tree:
    """One multicast tree, for `rate` bits/s of data.

    `parents`: for each host that it enters the one that it receives from, SOURCE for the sender. Raises
    WrongInputError for a rate that cannot be, and for hosts that the sender's data does not reach.
    """

    rate: float
    parents: Mapping[str, str]

    def __post_init__(self) -> None:
        if not (math.isfinite(self.rate) and self.rate > 0):
            raise WrongInputError(f"a tree of {self.rate:g} bits/s carries nothing; give each a rate above 0")
        if not self.parents:
            raise WrongInputError("a tree enters no host; leave it out")
        reached = {SOURCE}
        for host in self.parents:
            self._reach(host, reached)

    def _reach(self, host: str, reached: set[str]) -> None:
        way: list[str] = []
        while host not in reached:
            if host in way:
                raise WrongInputError(f"a tree has a cycle at {host!r}; each host needs a path to the sender")
            if host not in self.parents:
                raise WrongInputError(f"host {host!r} in a tree has no parent; name its parent")
            way.append(host)
            host = self.parents[host]
        reached.update(way)


@dataclass(frozen=True, slots=True)
class Trees(TransportChoice):
    """Several trees at once, each of which carries its share of the blocks at its rate.

    The session's thread calls `watch` with the state of the phase, about twice a second; it must not wait. `broken` are
    edges (parent, child) that earlier phases of the transfer found broken: later ones avoid them. Raises
    WrongInputError without any tree.
    """

    transport: ClassVar[str] = TREES
    trees: tuple[Tree, ...]
    watch: Callable[[PhaseMeasurement], None] | None = field(default=None, compare=False)
    broken: frozenset[tuple[str, str]] = field(default=frozenset(), compare=False)

    def __post_init__(self) -> None:
        if not self.trees:
            raise WrongInputError("no tree is given; name at least one")
