"""What a transport is at a sender: it brings the reader's blocks to the receivers, and tells the session how far it is.

The session permits and is told; it hands no bytes over, and asks no transport for its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from blast_transport.base.errors import RemoteProtocolError
from blast_transport.blocks.block_map import BlockMap
from blast_transport.credentials.material import Credentials
from blast_transport.links.dialling import Address, Dialer
from blast_transport.store.block_reader import BlockReader
from blast_transport.transports.choices import TransportChoice
from blast_transport.wire.messages import Phase


@dataclass(frozen=True, slots=True)
class Granted:
    """It may go at `rate` bits/s, and waits to be told at how many of them the receivers can follow."""

    rate: float


@dataclass(frozen=True, slots=True)
class Sent:
    """All blocks before `stop` have left, or need not."""

    stop: int


@dataclass(frozen=True, slots=True)
class Digested:
    """The transport has digested the blocks from `first` on by itself; their digests one after the other."""

    first: int
    digests: bytes


@dataclass(frozen=True, slots=True)
class PeerLost:
    """The transport serves this receiver no more, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Anew:
    """The transport cannot go on as it is for all: the session is to go on by this choice, with another phase."""

    choice: TransportChoice


SendingEvent = Granted | Sent | Digested | PeerLost | Anew


@dataclass(frozen=True, slots=True)
class Member:
    """A receiver that may take part in passing on. `lags`: what it misses is far behind what the others do."""

    address: Address
    lags: bool


class Reached(NamedTuple):
    """A receiver holds all blocks before `position`, and `written` altogether, as it reports."""

    position: int
    written: int


@dataclass(frozen=True, slots=True)
class SendingContext:
    """What a transport is given: the blocks, and how it reaches others.

    `held`: blocks that every receiver had before, and that need not leave. `members`: the receivers that keep up and
    take whatever rate there is. `own_address` is ours on the packet network as the receivers see it,
    `interface_address` on the light path, None without one. `dial` reaches receivers, and `credentials` are what we
    prove ourselves by to those that come to us. `wake` tells the session, from any thread, that there are events, and
    there is something to read at the descriptor `woken` when it was told.
    """

    reader: BlockReader
    held: BlockMap
    members: tuple[Member, ...]
    own_address: str
    interface_address: str | None
    dial: Dialer
    credentials: Credentials
    wake: Callable[[], None]
    woken: int


class SendingTransport:
    """One phase's transport at the sender; what most have no use for does nothing here.

    Its methods are the session's thread's and wait for nobody, but for `work` as `stay` lets it. `over`: nothing more
    comes of it: every block has left by it or by one before it, or it has failed. `datagrams` counts what left as such;
    `offload`: whether as super-packets, None before the first.
    """

    over = False
    datagrams = 0
    offload: bool | None = None

    def __init__(self, phase: Phase) -> None:
        self._phase = phase

    def phase(self, name: str) -> Phase | None:
        """What this receiver is told; None: it gets nothing by this transport."""
        return self._phase

    def follow(self, choice: TransportChoice) -> bool:
        """Go on by this choice, if it means the same way; whether it does."""
        raise NotImplementedError

    def permit(self, stop: int) -> None:
        """Blocks before `stop` may leave; it may go back, when somebody has come who lags."""

    def pace(self, rate: float) -> None:
        """Of what was granted the receivers can follow so many bits/s."""

    def room(self, now: float) -> int:
        """How many blocks it takes now of which something has to leave again."""
        return 0

    def retransmit(self, block: int, mask: int) -> None:
        """These segments of the block, a bit for each, have to reach everybody again."""

    def stay(self, until: float) -> None:
        """What is to be done next may last until then: the session has nothing else to do, unless it is woken."""

    def work(self, now: float) -> float:
        """Do what is due; seconds until there is more to do, unless something happens. First when all listen.

        Raises SourceChangedError, ForgottenError, LightPathError, WrongInputError.
        """
        raise NotImplementedError

    def events(self) -> Iterable[SendingEvent]:
        """What has happened since the last call."""
        raise NotImplementedError

    def heard(self, name: str, body: bytes, now: float) -> None:
        """A word of our counterpart at this receiver. Raises RemoteProtocolError."""
        raise RemoteProtocolError(f"a word that the {self._phase.transport} transport does not know")

    def look(self, reached: Mapping[str, Reached], now: float) -> None:
        """See how far the receivers that keep up are. Some times a second."""

    def gone(self, name: str, reason: str) -> None:
        """The session has lost this receiver, which may come back."""

    def leave(self) -> int | None:
        """Another transport brings what comes next: the block before which this one still brings all, None: nothing."""
        return None

    def quit(self, reason: str) -> None:
        """Somebody wants the transfer to end."""

    def close(self) -> None:
        """Give back everything; nothing is told any more. What needs `descriptor` of the source has duplicated it."""
