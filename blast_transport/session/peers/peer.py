"""One receiver of a session as the sender sees it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum, auto

from blast_transport.base.errors import LocalProtocolError
from blast_transport.blocks.block_map import BlockMap
from blast_transport.session.peers.readmission import Readmission
from blast_transport.session.peers.retransmit_queue import RetransmitQueue
from blast_transport.wire.messages import Fin, Ready


class PeerState(Enum):
    """State of a receiver."""

    ABSENT = auto()
    INVITED = auto()
    CHANGING_PHASE = auto()
    READY = auto()
    ENDING = auto()
    COMPLETE = auto()
    FAILED = auto()


class PeerEvent(Enum):
    """Event that changes the state of a receiver."""

    CONNECTED = auto()
    DISCONNECTED = auto()
    ANSWERED = auto()
    PHASE = auto()
    LISTENS = auto()
    END_OF_DATA = auto()
    STORED = auto()
    FAILURE = auto()


_TRANSITIONS: dict[tuple[PeerState, PeerEvent], PeerState] = {
    (PeerState.ABSENT, PeerEvent.CONNECTED): PeerState.INVITED,
    (PeerState.ABSENT, PeerEvent.FAILURE): PeerState.FAILED,
    (PeerState.INVITED, PeerEvent.ANSWERED): PeerState.READY,
    (PeerState.READY, PeerEvent.PHASE): PeerState.CHANGING_PHASE,
    (PeerState.CHANGING_PHASE, PeerEvent.LISTENS): PeerState.READY,
    (PeerState.READY, PeerEvent.END_OF_DATA): PeerState.ENDING,
    # A receiver that reconnects may have completed before its connection was lost.
    (PeerState.READY, PeerEvent.STORED): PeerState.COMPLETE,
    (PeerState.CHANGING_PHASE, PeerEvent.STORED): PeerState.COMPLETE,
    (PeerState.ENDING, PeerEvent.STORED): PeerState.COMPLETE,
}
for _state in (PeerState.INVITED, PeerState.CHANGING_PHASE, PeerState.READY, PeerState.ENDING):
    _TRANSITIONS[_state, PeerEvent.DISCONNECTED] = PeerState.ABSENT
    _TRANSITIONS[_state, PeerEvent.FAILURE] = PeerState.FAILED

UNANSWERED = (PeerState.INVITED, PeerState.CHANGING_PHASE)
OVER = (PeerState.COMPLETE, PeerState.FAILED)
LISTENING = (PeerState.CHANGING_PHASE, PeerState.READY, PeerState.ENDING)


@dataclass(slots=True)
class Peer:
    """Receiver of a session.

    `handled`, `position` and `written` are as in Credit; `progressed` is the time of their last change. `resumed`:
    blocks that it held at its first answer. `awaited`: deadline to reconnect after the path to it was lost. `demoted`:
    reason for being repaired after the others, empty if it is not. `readmission`: its progress since. `held_up`:
    seconds for which it alone blocked the window lately. `repair_at`: earliest time of its next repair, which its rate
    limit sets. `lossy`: it has lost datagrams while it kept up. `unreached`: reason why they did not reach it.
    `unanswered`: consecutive invitations that it answered by closing the connection. `census`: number of receivers of
    the session by state.
    """

    progressed: float
    state: PeerState = PeerState.ABSENT
    reason: str = "is not connected"
    ready: Ready | None = None
    fin: Fin | None = None
    retransmits: RetransmitQueue = field(default_factory=RetransmitQueue)
    held: BlockMap = field(default_factory=BlockMap)
    handled: int = 0
    position: int = 0
    written: int = 0
    resumed: int = 0
    awaited: float = 0.0
    demoted: str = ""
    lossy: bool = False
    unreached: str = ""
    readmission: Readmission = field(default_factory=Readmission)
    held_up: float = 0.0
    repair_at: float = 0.0
    unanswered: int = 0
    repairs: int = 0
    repaired_bytes: int = 0
    census: Counter[PeerState] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.census[self.state] += 1

    @property
    def over(self) -> bool:
        """Return whether this receiver has ended, successfully or not."""
        return self.state in OVER

    @property
    def overserved(self) -> bool:
        """Return whether unread repairs may be left in the connection of this ended receiver."""
        return self.fin is not None and self.repaired_bytes != self.fin.repaired

    @property
    def active(self) -> bool:
        """Return whether it keeps up with the others."""
        return self.state is PeerState.READY and not self.demoted

    def move(self, event: PeerEvent) -> None:
        """Change the state. Raise LocalProtocolError for a transition that is not in the table."""
        try:
            after = _TRANSITIONS[self.state, event]
        except KeyError:
            raise LocalProtocolError(f"{event.name} is not possible in state {self.state.name}") from None
        self.census[self.state] -= 1
        self.census[after] += 1
        self.state = after
