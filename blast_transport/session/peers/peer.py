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
    """Where one receiver stands."""

    ABSENT = auto()
    INVITED = auto()
    CHANGING_PHASE = auto()
    READY = auto()
    ENDING = auto()
    COMPLETE = auto()
    FAILED = auto()


class PeerEvent(Enum):
    """What changes where it stands."""

    CONNECTED = auto()
    GONE = auto()
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
    # Who has come again may have been through when it was lost.
    (PeerState.READY, PeerEvent.STORED): PeerState.COMPLETE,
    (PeerState.CHANGING_PHASE, PeerEvent.STORED): PeerState.COMPLETE,
    (PeerState.ENDING, PeerEvent.STORED): PeerState.COMPLETE,
}
for _state in (PeerState.INVITED, PeerState.CHANGING_PHASE, PeerState.READY, PeerState.ENDING):
    _TRANSITIONS[_state, PeerEvent.GONE] = PeerState.ABSENT
    _TRANSITIONS[_state, PeerEvent.FAILURE] = PeerState.FAILED

UNANSWERED = (PeerState.INVITED, PeerState.CHANGING_PHASE)
OVER = (PeerState.COMPLETE, PeerState.FAILED)
LISTENING = (PeerState.CHANGING_PHASE, PeerState.READY, PeerState.ENDING)


@dataclass(slots=True)
class Peer:
    """One receiver. `handled`, `position` and `written` are as in Credit; `progressed` is when they changed last.

    `resumed`: blocks that it had when it was first there. `awaited`: until when it may come back where the way to it
    was lost. `demoted`: why it is served apart from the others, empty if it is not. `readmission`: whether it keeps up
    again. `held_up`: seconds for which it alone kept the others waiting lately. `repair_at`: before which it gets no
    repair, for it takes no more than its rate. `unanswered`: invitations one after the other at which it closed the
    connection. `census`: how many receivers of the session stand where, so that nobody need count them.
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
        """This receiver has ended, well or badly."""
        return self.state in OVER

    @property
    def overserved(self) -> bool:
        """It was sent more repairs than it had use for, and ended without reading them, maybe."""
        return self.fin is not None and self.repaired_bytes != self.fin.repaired

    @property
    def active(self) -> bool:
        """It keeps up with the others."""
        return self.state is PeerState.READY and not self.demoted

    def move(self, event: PeerEvent) -> None:
        """Change the state. Raises LocalProtocolError where the table has nothing."""
        try:
            after = _TRANSITIONS[self.state, event]
        except KeyError:
            raise LocalProtocolError(f"{event.name} is not possible in state {self.state.name}") from None
        self.census[self.state] -= 1
        self.census[after] += 1
        self.state = after
