"""The messages of a control connection, between the sender and one receiver. Meaning only; `codec` has the bytes.

Every message carries the session it belongs to, so that a late one of an older session is recognized. The sender
invites with Hello, the receiver answers Ready. Then come phases: Phase says by which transport the data goes on from
which block, and PhaseReady that the receiver is listening. Digests are the sender's table, in pieces. Credit is how far
a receiver has written, and its sign of progress; Nack asks for segments, Repair brings them. EndOfData says that all
was sent, Fin is the receiver's verdict. TransportReport is a transport's own. Quit ends a session because somebody
wanted so.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from blast_transport.base.errors import RemoteProtocolError
from blast_transport.blocks.block_map import Range
from blast_transport.blocks.digests import Buffer
from blast_transport.blocks.layout import Layout
from blast_transport.wire.fields import Parameters
from blast_transport.wire.transports import TRANSPORTS, Traits

FILE, FOLDER, COMMAND, MEMORY = "file", "folder", "command", "memory"
KINDS = (FILE, FOLDER, COMMAND, MEMORY)
MAX_HOLES = 4096
"""Ranges of blocks in a Hello."""
MAX_HOLE_BLOCKS = 1 << 22
"""Blocks in them: a receiver keeps 16 bytes of each, at the word of a sender that has sent nothing yet."""


@dataclass(frozen=True, slots=True)
class Hello:
    """Invitation to take part in `session`.

    What comes has `size` bytes (None: a stream that ends when it ends), goes to the `kind` of target named `name`
    below `folder` (a command may be told the name `file`), and is checked by the digests of `suite`. `content` names
    what is sent, so that a receiver that holds a part of the same may go on; empty: begin anew. `key` unseals blocks
    that come by light; empty: not sealed.
    By the same `owner` the sender may come again over another connection, and the session goes on; empty: it may not.
    The blocks in the ranges `holes` are zeros and lie in holes of what is sent. A receiver that makes them itself says
    so in Ready; to any other one they are sent as data.
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
        """Whether a later session may go on with what came: a stream comes once only."""
        return bool(self.content) and self.size is not None

    @property
    def layout(self) -> Layout:
        """How the data is cut. Raises RemoteProtocolError."""
        return Layout(self.size, self.segment_size, self.block_segments, 16 if self.key else 0)

    def check(self) -> None:
        """Raises RemoteProtocolError if no sender may say this."""
        _ = self.layout
        if self.kind not in KINDS or len(self.key) not in (0, 32) or not 0 <= self.session < 1 << 32:
            raise RemoteProtocolError("Hello has a target, a key or a session out of range")
        self._check_holes()

    def _check_holes(self) -> None:
        reached, stop = 0, self.layout.blocks if self.size is not None else 0
        for first, count in self.holes:
            if not reached <= first < first + count <= stop:
                raise RemoteProtocolError("Hello has holes that are out of order, or in what has no such blocks")
            reached = first + count
        if len(self.holes) > MAX_HOLES or sum(count for _, count in self.holes) > MAX_HOLE_BLOCKS:
            raise RemoteProtocolError(f"Hello has more than {MAX_HOLES} holes, or {MAX_HOLE_BLOCKS} blocks in them")


LOWEST_RATE = 1000.0
"""Bits/s; a receiver that asks for less would keep a sender for ever."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The receiver takes part.

    `held`: ranges of blocks that it has already. `receive_buffer`: bytes that its light socket may hold, `offload`:
    whether it takes super-packets; `max_rate`: bits/s that it can take, None for any; `early`: it needs the digest
    of a block before it may use it. `phase`: the one at which it is already, because its sender has come again.
    """

    session: int
    held: tuple[tuple[int, int], ...] = ()
    receive_buffer: int = 0
    offload: bool = False
    max_rate: float | None = None
    early: bool = False
    phase: int = 0

    def check(self) -> None:
        """Raises RemoteProtocolError if no receiver may say this."""
        if self.max_rate is not None and not self.max_rate >= LOWEST_RATE:
            raise RemoteProtocolError(
                f"Ready asks for at most {self.max_rate:g} bit/s, and {LOWEST_RATE:g} is the least: repairs would "
                f"never end"
            )


@dataclass(frozen=True, slots=True)
class Phase:
    """From block `first` on the data comes by `transport`; `number` counts the phases of a session from 1.

    By one that is windowed a Credit is due every `credit` blocks, and no block leaves before it is less than `window`
    ahead of the Credits of those that the sender waits for. `token` lets in those that others connect to. `parameters`
    are the transport's own.
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
        """What the transport does."""
        return TRANSPORTS[self.transport]

    def check(self) -> None:
        """Raises RemoteProtocolError if no sender may say this."""
        if self.transport not in TRANSPORTS or min(self.first, self.number - 1, self.credit - 1, self.window - 1) < 0:
            raise RemoteProtocolError("Phase has a transport, a block, a window or a number out of range")


@dataclass(frozen=True, slots=True)
class PhaseReady:
    """The receiver listens on phase `number`; or `reason` says why it cannot, and it needs its data otherwise."""

    session: int
    number: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Digests:
    """The digests of the blocks from `first` on, one after the other."""

    session: int
    first: int
    digests: bytes


@dataclass(frozen=True, slots=True)
class Credit:
    """The receiver has dealt with every block before `handled`: written it, or asks for what it misses of it within
    a window of light.

    All blocks before `position` are written, `written` in number altogether.
    """

    session: int
    handled: int
    position: int
    written: int


@dataclass(frozen=True, slots=True)
class Nack:
    """The receiver misses these segments."""

    session: int
    ranges: tuple[Range, ...]


@dataclass(frozen=True, slots=True)
class Repair:
    """Over the packet network, as they travel by light: rows of segments, (first, data) each within one block."""

    session: int
    pieces: tuple[tuple[int, Buffer], ...]


@dataclass(frozen=True, slots=True)
class EndOfData:
    """All was sent once: `size` bytes, with this digest of the whole."""

    session: int
    size: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class Fin:
    """The receiver's verdict: the data is in place with this `digest` of the whole, or `reason` says why not.

    `first_datagram` is its time.monotonic() at its first datagram, None if it saw none. `repaired` counts bytes that
    came as repairs, `duplicates` segments that came again, `refused` datagrams and blocks that were not right.
    `durable`: whether it outlives a loss of power there, None where the receiver cannot know, or does not say. `engine`
    proved and stored it (`base/engines.py`).
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


@dataclass(frozen=True, slots=True)
class Alive:
    """A sign of life. From the sender: all blocks before `sent` have left, so far as they go by light."""

    session: int
    sent: int


@dataclass(frozen=True, slots=True)
class Demoted:
    """The sender does not wait for this receiver any more; what it misses comes when the others are done."""

    session: int


@dataclass(frozen=True, slots=True)
class Promoted:
    """The receiver was demoted and keeps up again: the sender waits for it as for the others."""

    session: int


@dataclass(frozen=True, slots=True)
class Quit:
    """The session ends here, because somebody wanted so."""

    session: int
    reason: str


@dataclass(frozen=True, slots=True)
class TransportReport:
    """A message from the transport of phase `phase` at a receiver to its counterpart at the sender."""

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
    | Alive
    | Quit
    | Demoted
    | Promoted
    | TransportReport
)
