"""Interface of a transport at a sender.

It sends the reader's blocks to the receivers, and reports progress to the session. The session sets limits and receives
events; it passes no bytes, and does not depend on the kind of transport.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from blast_transport.base.errors import RemoteProtocolError
from blast_transport.base.frozen_record import FrozenRecord
from blast_transport.blocks.block_map import BlockMap
from blast_transport.credentials.material import Credentials
from blast_transport.links.dialling import Address, Dialer
from blast_transport.store.sources.block_reader import BlockReader
from blast_transport.transports.choices import TransportChoice
from blast_transport.wire.messages import Phase


class Granted(FrozenRecord):
    """The transport may send at `rate` bits/s, and waits for the rate that the receivers accept."""

    rate: float


class RateChanged(FrozenRecord):
    """The transport now sends at about `rate` bits/s, by its own decision."""

    rate: float


class Sent(FrozenRecord):
    """All blocks before `stop` have left, or need not."""

    stop: int


class Digested(FrozenRecord):
    """The transport itself has digested the blocks from `first` on; `digests` are consecutive."""

    first: int
    digests: bytes


class PeerLost(FrozenRecord):
    """The transport no longer serves this receiver."""

    name: str
    reason: str


class PeersUnreached(FrozenRecord):
    """The datagrams of the phase do not reach these receivers: they get the data afterwards, from a receiver."""

    names: frozenset[str]
    reason: str


class PhaseRequested(FrozenRecord):
    """The transport cannot continue for all receivers: another phase by this choice is needed.

    None: by the alternative of the present one. `note` states the reason in the result.
    """

    choice: TransportChoice | None
    note: str = ""


class OrderGiven(FrozenRecord):
    """An order of the transport to its counterpart at this receiver."""

    name: str
    body: bytes


SendingEvent = OrderGiven | Granted | RateChanged | Sent | Digested | PeerLost | PeersUnreached | PhaseRequested


class ParityRun(NamedTuple):
    """The parity segments from `first` to before `stop` of a coding group."""

    group: int
    first: int
    stop: int


class ForwardingMember(FrozenRecord):
    """Receiver that may forward data. `lags`: its missing blocks are far behind those of the others."""

    address: Address
    lags: bool


class Reached(NamedTuple):
    """A receiver holds all blocks before `position`, and `written` altogether, as it reports."""

    position: int
    written: int


class SendingContext(FrozenRecord):
    """Resources of a transport: the blocks, and connections to others.

    `held`: blocks that every receiver held before, which need not be sent. `members`: receivers that keep up and accept
    any rate. `own_address`: of this host on the packet network as the receivers see it, `interface_address`: on the
    optical network, None without one. `dial` connects to receivers, and `credentials` authenticate this host to
    connecting nodes. `wake` notifies the session of events, from any thread; the descriptor `woken` is then readable.
    `decodes`: all receivers that keep up can compute lost segments from parity segments.
    """

    reader: BlockReader
    held: BlockMap
    members: tuple[ForwardingMember, ...]
    own_address: str
    interface_address: str | None
    dial: Dialer
    credentials: Credentials
    wake: Callable[[], None]
    woken: int
    decodes: bool = False


class SendingTransport:
    """Transport of one phase at the sender; methods that most transports do not need do nothing here.

    Only the session's thread calls its methods; they do not wait, except for `work` within the limits of `stay`.
    `over`: it is done: every block has left by it or an earlier transport, or it has failed. `datagrams` counts sent
    datagrams; `offload`: whether as super-packets, None before the first. `group_blocks`: blocks of a coding group, 0:
    it sends no parity segments.
    """

    over = False
    datagrams = 0
    offload: bool | None = None
    group_blocks = 0

    def __init__(self, phase: Phase) -> None:
        self._phase = phase

    def phase(self, name: str) -> Phase | None:
        """Return the Phase for this receiver; None if this transport does not serve it."""
        return self._phase

    def follow(self, choice: TransportChoice) -> bool:
        """Continue with this choice, if it needs no new phase; return whether it does."""
        raise NotImplementedError

    def permit(self, stop: int) -> None:
        """Let blocks before `stop` leave; `stop` may decrease when a lagging receiver joins."""

    def pace(self, rate: float) -> None:
        """Set the rate in bits/s that the receivers accept, at most the granted one."""

    def room(self, now: float) -> int:
        """Return the number of blocks whose segments it can retransmit now."""
        return 0

    def retransmit(self, block: int, mask: int) -> None:
        """Retransmit these segments of the block, a bit for each, to all receivers."""

    def send_parity(self, parity: ParityRun) -> None:
        """Send parity segments to all receivers, in a phase with coding groups."""

    def stay(self, until: float) -> None:
        """Let the next `work` last until then: the session has nothing else to do, unless it is woken."""

    def work(self, now: float) -> float:
        """Do the due work; return the seconds until the next, unless an event occurs.

        First called when all receivers listen. Raises SourceChangedError, ForgottenError, LightPathError,
        WrongInputError.
        """
        raise NotImplementedError

    def events(self) -> Iterable[SendingEvent]:
        """Return the events since the last call."""
        raise NotImplementedError

    def receive_report(self, name: str, body: bytes, now: float) -> None:
        """Handle a report of the counterpart at this receiver. Raise RemoteProtocolError."""
        raise RemoteProtocolError(f"the {self._phase.transport} transport expects no reports")

    def look(self, reached: Mapping[str, Reached], now: float) -> None:
        """Handle the progress of the receivers that keep up; called several times a second."""

    def receiver_lost(self, name: str, reason: str) -> None:
        """Handle the loss of this receiver, which may reconnect."""

    def leave(self) -> int | None:
        """Let another transport send the next blocks.

        Return the block before which this one still sends all, None: nothing.
        """
        return None

    def quit(self, reason: str) -> None:
        """Abort the transfer."""

    def close(self) -> None:
        """Free all resources; there are no further events.

        Threads that still need the source have duplicated its descriptor.
        """
