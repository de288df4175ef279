"""What a node's core is told, and what it tells its shell to do."""

from __future__ import annotations

from dataclasses import dataclass

from blast_transport.transports.pipeline.protocol.messages import Message
from blast_transport.transports.pipeline.protocol.phase import PipelineEvent

# What happened between us and our successor.


@dataclass(frozen=True, slots=True)
class Started:
    """The node begins."""


@dataclass(frozen=True, slots=True)
class FromSuccessor:
    """Our successor said something."""

    message: Message


@dataclass(frozen=True, slots=True)
class SuccessorLost:
    """The connection to our successor failed, or could not be made; `unanswered`: for all the time that we waited."""

    reason: str
    unanswered: bool = False


@dataclass(frozen=True, slots=True)
class Sent:
    """All before `position` has gone to our successor."""

    position: int


@dataclass(frozen=True, slots=True)
class Unheld:
    """What our successor needs next is not held any more; the smallest offset that is: `lowest`."""

    lowest: int


@dataclass(frozen=True, slots=True)
class Torn:
    """In the middle of what was announced to our successor, it was not held any more: its connection is closed."""


# What happened between us and our predecessor, or the source.


@dataclass(frozen=True, slots=True)
class Joined:
    """The node at this place has connected to be our predecessor."""

    place: int


@dataclass(frozen=True, slots=True)
class FromPredecessor:
    """Our predecessor said something other than data."""

    message: Message


@dataclass(frozen=True, slots=True)
class PredecessorLost:
    """The connection from our predecessor ended."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """All before `position` is held."""

    position: int


@dataclass(frozen=True, slots=True)
class FromSource:
    """The source said something, on the connection that we made to fetch from it."""

    message: Message


@dataclass(frozen=True, slots=True)
class FetchLost:
    """That connection failed."""

    reason: str


@dataclass(frozen=True, slots=True)
class Stored:
    """After `Complete`: everything that came is stored."""


@dataclass(frozen=True, slots=True)
class Passing:
    """Our own side below: everything after us is done, and the report is delivered."""


Event = (
    Started
    | FromSuccessor
    | SuccessorLost
    | Sent
    | Unheld
    | Torn
    | Joined
    | FromPredecessor
    | PredecessorLost
    | Arrived
    | FromSource
    | FetchLost
    | Stored
    | Passing
)


# What the shell is to do.


@dataclass(frozen=True, slots=True)
class Connect:
    """Connect to the node at `place` and say Join; it becomes our successor."""

    place: int


@dataclass(frozen=True, slots=True)
class Probe:
    """Find out whether the nodes at these places live, within `probe` seconds; a Connect to one may follow soon."""

    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Serve:
    """Send data from `offset` on to our successor."""

    offset: int


@dataclass(frozen=True, slots=True)
class SendDown:
    """To our successor."""

    message: Message


@dataclass(frozen=True, slots=True)
class CloseDown:
    """Close the connection to our successor, when what was said is sent."""


@dataclass(frozen=True, slots=True)
class Admit:
    """Whoever has just joined is our predecessor; the one before, if there is one, hears `farewell` and is closed."""

    farewell: Message | None


@dataclass(frozen=True, slots=True)
class Refuse:
    """Whoever has just joined hears this and is closed."""

    message: Message


@dataclass(frozen=True, slots=True)
class SendUp:
    """To our predecessor."""

    message: Message


@dataclass(frozen=True, slots=True)
class CloseUp:
    """Close the connection from our predecessor, when what was said is sent."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """Connect to the source and ask it for these bytes."""

    offset: int
    stop: int


@dataclass(frozen=True, slots=True)
class Skip:
    """Others have brought all before this offset: take what comes from there on."""

    offset: int


@dataclass(frozen=True, slots=True)
class CloseFetch:
    """Close the connection to the source."""


@dataclass(frozen=True, slots=True)
class Complete:
    """Nothing comes after byte `stop` in this phase; `final`: nor in the file or stream. Answered by `Stored`."""

    stop: int
    final: bool


@dataclass(frozen=True, slots=True)
class Tell:
    """To the session. `Ended` is the last one: close everything."""

    event: PipelineEvent


_Down = Connect | Probe | Serve | SendDown | CloseDown
_Up = Admit | Refuse | SendUp | CloseUp | Fetch | Skip | CloseFetch | Complete

Command = _Down | _Up | Tell
