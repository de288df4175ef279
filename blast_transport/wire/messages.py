"""Messages of the control connection between the sender and one receiver; `codec` encodes them.

Every message carries its session, so that a late message of an older session is recognized. The sender sends Hello, the
receiver answers Ready. Phases follow: Phase names the transport and its first block, PhaseReady confirms that the
receiver listens. Digests carry the sender's digest table in pieces. Credit reports how far the receiver has written,
and thereby its progress; Nack requests segments, Repair carries them. EndOfData follows the last block, Fin carries the
receiver's verdict. TransportReport and TransportOrder belong to a transport. Abort ends a session early.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from blast_transport.base.errors import RemoteProtocolError
from blast_transport.base.frozen_record import FrozenRecord
from blast_transport.blocks.block_map import Range
from blast_transport.blocks.digests import Buffer
from blast_transport.blocks.layout import BlockLayout
from blast_transport.wire.fields import Parameters
from blast_transport.wire.transports import TRANSPORTS, Traits

FILE, FOLDER, COMMAND, MEMORY = "file", "folder", "command", "memory"
KINDS = (FILE, FOLDER, COMMAND, MEMORY)
MAX_HOLES = 4096
"""Maximum ranges of blocks in a Hello."""
MAX_HOLE_BLOCKS = 1 << 22
"""Maximum blocks in these ranges. A receiver allocates 16 bytes for each before the sender has sent any data."""


@dataclass(frozen=True, slots=True)
class Hello:
    """Invitation to take part in `session`.

    The data has `size` bytes (None: a stream of unknown length) and goes to the target `name` of `kind` below `folder`;
    a command may receive the file name `file`. Digests of `suite` verify it. `content` identifies the data, so that a
    receiver that holds a part can resume; empty: start from zero. `key` unseals blocks of the optical transport; empty:
    not sealed. A sender with the same `owner` may reconnect and continue the session; empty: it may not. The blocks in
    the ranges `holes` are zeros and lie in holes of the source. A receiver that creates them itself lists them in
    Ready; other receivers get them as data.
    """

    session: int
    size: int | None
    segment_size: int
    block_segments: int
    suite: str
    kind: str
    name: str
    folder: str = ""
    content: str = ""
    key: bytes = b""
    owner: bytes = b""
    file: str = ""
    holes: tuple[tuple[int, int], ...] = ()

    @property
    def resumable(self) -> bool:
        """Return whether a later session can resume from the received blocks; a stream cannot be sent twice."""
        return bool(self.content) and self.size is not None

    @property
    def layout(self) -> BlockLayout:
        """Return the layout of the blocks. Raise RemoteProtocolError if it is invalid."""
        return BlockLayout(self.size, self.segment_size, self.block_segments, 16 if self.key else 0)

    def check(self) -> None:
        """Raise RemoteProtocolError if a field is out of range."""
        _ = self.layout
        if self.kind not in KINDS or len(self.key) not in (0, 32) or not 0 <= self.session < 1 << 32:
            raise RemoteProtocolError("Hello has a target, a key or a session out of range")
        self._check_holes()

    def _check_holes(self) -> None:
        reached, stop = 0, self.layout.blocks if self.size is not None else 0
        for first, count in self.holes:
            if not reached <= first < first + count <= stop:
                raise RemoteProtocolError("Hello has holes that overlap, are out of order, or lie beyond the data")
            reached = first + count
        if len(self.holes) > MAX_HOLES or sum(count for _, count in self.holes) > MAX_HOLE_BLOCKS:
            raise RemoteProtocolError(f"Hello has more than {MAX_HOLES} holes, or {MAX_HOLE_BLOCKS} blocks in them")


MIN_RATE = 1000.0
"""Bits/s; repairs at a lower rate would occupy the sender without end."""


class Ready(FrozenRecord):
    """Acceptance of a Hello by the receiver.

    `held`: ranges of blocks that it has already. `receive_buffer`: bytes of its optical socket's receive buffer.
    `offload`: whether it accepts super-packets. `max_rate`: limit in bits/s, None for no limit. `early`: it needs the
    digest of a block before it can use the block. `phase`: the current phase, if the sender has reconnected.
    `coding`: it can compute lost segments from parity segments.
    """

    session: int
    held: tuple[tuple[int, int], ...] = ()
    receive_buffer: int = 0
    offload: bool = False
    max_rate: float | None = None
    early: bool = False
    phase: int = 0
    coding: bool = False

    def check(self) -> None:
        """Raise RemoteProtocolError if the requested rate is too low."""
        if self.max_rate is not None and not self.max_rate >= MIN_RATE:
            raise RemoteProtocolError(
                f"Ready limits the rate to {self.max_rate:g} bit/s, below the minimum of {MIN_RATE:g}; "
                f"raise the receiver's rate limit"
            )


@dataclass(frozen=True, slots=True)
class Phase:
    """Start of phase `number` (counted from 1): from block `first` on, the data comes by `transport`.

    In a windowed transport a Credit is due every `credit` blocks, and every block that leaves is less than `window`
    blocks ahead of the Credits of the receivers that the sender waits for. `token` authenticates connections between
    receivers. `parameters` belong to the transport.
    """

    session: int
    number: int
    transport: str
    first: int
    credit: int = 1
    window: int = 1
    token: bytes = b""
    parameters: Parameters = field(default_factory=dict)

    @property
    def traits(self) -> Traits:
        """Return the properties of the transport."""
        return TRANSPORTS[self.transport]

    def check(self) -> None:
        """Raise RemoteProtocolError if a field is out of range."""
        if self.transport not in TRANSPORTS or min(self.first, self.number - 1, self.credit - 1, self.window - 1) < 0:
            raise RemoteProtocolError("Phase has a transport, a block, a window or a number out of range")


class PhaseReady(FrozenRecord):
    """Confirmation that the receiver listens in phase `number`, or its `reason` for needing another transport."""

    session: int
    number: int
    reason: str = ""


class Digests(FrozenRecord):
    """Digests of consecutive blocks from `first` on."""

    session: int
    first: int
    digests: bytes


class Credit(FrozenRecord):
    """Acknowledgment of every block before `handled`: it is written, or its missing segments are requested.

    In an optical phase the receiver requests them within a window. All blocks before `position` are written, and
    `written` blocks in total.
    """

    session: int
    handled: int
    position: int
    written: int


class Nack(FrozenRecord):
    """Request for missing segments."""

    session: int
    ranges: tuple[Range, ...]


class Repair(FrozenRecord):
    """Segments sent over the packet network, sealed as in the optical transport.

    `pieces` are (first, data) rows within one block each.
    """

    session: int
    pieces: tuple[tuple[int, Buffer], ...]


class EndOfData(FrozenRecord):
    """Announcement that all data was sent once: `size` bytes, with this digest of the whole."""

    session: int
    size: int
    digest: bytes


class Fin(FrozenRecord):
    """Verdict of the receiver: the data is in place with this `digest` of the whole, or `reason` states the failure.

    `first_datagram` is its time.monotonic() at its first datagram, None if none arrived. `repaired` counts bytes
    received as repairs, `duplicates` segments received more than once, `refused` invalid datagrams and blocks.
    `durable`: whether the data survives a power loss at the receiver; None: unknown. `engine` verified and stored it
    (`base/engines.py`).
    """

    session: int
    digest: bytes = b""
    reason: str = ""
    first_datagram: float | None = None
    repaired: int = 0
    duplicates: int = 0
    refused: int = 0
    durable: bool | None = None
    engine: str = ""


class Heartbeat(FrozenRecord):
    """Heartbeat. From the sender: all blocks before `sent` have left, as far as the optical transport carries them."""

    session: int
    sent: int


class Demoted(FrozenRecord):
    """Notice that the sender no longer waits for this receiver and repairs it after the others."""

    session: int


class Readmitted(FrozenRecord):
    """Notice that the sender waits again for this receiver, which was demoted and has caught up."""

    session: int


class Abort(FrozenRecord):
    """End of the session before the data is whole."""

    session: int
    reason: str


class TransportReport(FrozenRecord):
    """Message from the transport of phase `phase` at a receiver to its counterpart at the sender."""

    session: int
    phase: int
    body: bytes


class TransportOrder(FrozenRecord):
    """Message from the transport of phase `phase` at the sender to its counterpart at a receiver."""

    session: int
    phase: int
    body: bytes


Message = (
    Hello
    | Ready
    | Phase
    | PhaseReady
    | Digests
    | Credit
    | Nack
    | Repair
    | EndOfData
    | Fin
    | Heartbeat
    | Abort
    | Demoted
    | Readmitted
    | TransportReport
    | TransportOrder
)
