"""Events of a node's core, and the commands that it gives to its shell."""

from __future__ import annotations

from dataclasses import dataclass

from blast_transport.transports.pipeline.protocol.messages import Message
from blast_transport.transports.pipeline.protocol.phase import PipelineEvent

# Events of the successor's side.


@dataclass(frozen=True, slots=True)
class Started:
    """The node starts."""


@dataclass(frozen=True, slots=True)
class FromSuccessor:
    """A message from the successor arrived."""

    message: Message


@dataclass(frozen=True, slots=True)
class SuccessorLost:
    """The connection to the successor failed, or could not be made; `unanswered`: for the whole waiting time."""

    reason: str
    unanswered: bool = False


@dataclass(frozen=True, slots=True)
class BytesSent:
    """All bytes before `position` went to the successor."""

    position: int


@dataclass(frozen=True, slots=True)
class BytesNoLongerHeld:
    """The bytes that the successor needs next are no longer held; `first_held` is the smallest offset that is."""

    first_held: int


@dataclass(frozen=True, slots=True)
class BytesLost:
    """Announced bytes were lost before they went to the successor: its connection is closed."""


# Events of the predecessor's side, and of the source.


@dataclass(frozen=True, slots=True)
class Joined:
    """The node at this position connected as the predecessor."""

    place: int


@dataclass(frozen=True, slots=True)
class FromPredecessor:
    """A message other than data arrived from the predecessor."""

    message: Message


@dataclass(frozen=True, slots=True)
class PredecessorLost:
    """The connection from the predecessor ended."""


@dataclass(frozen=True, slots=True)
class BytesArrived:
    """All bytes before `position` are held."""

    position: int


@dataclass(frozen=True, slots=True)
class FromSource:
    """A message arrived from the source, on the connection that fetches from it."""

    message: Message


@dataclass(frozen=True, slots=True)
class FetchLost:
    """The connection to the source failed."""

    reason: str


@dataclass(frozen=True, slots=True)
class DataStored:
    """After `Complete`: all received data is stored."""


@dataclass(frozen=True, slots=True)
class Passing:
    """The successor's side is done, and the report is delivered."""


Event = (
    Started
    | FromSuccessor
    | SuccessorLost
    | BytesSent
    | BytesNoLongerHeld
    | BytesLost
    | Joined
    | FromPredecessor
    | PredecessorLost
    | BytesArrived
    | FromSource
    | FetchLost
    | DataStored
    | Passing
)


# Commands to the shell.


@dataclass(frozen=True, slots=True)
class Connect:
    """Connect to the node at `place` and send Join; it becomes the successor."""

    place: int


@dataclass(frozen=True, slots=True)
class ProbeNodes:
    """Test whether the nodes at these positions live, within `probe` seconds; a Connect to one may follow soon."""

    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Serve:
    """Send data from `offset` on to the successor."""

    offset: int


@dataclass(frozen=True, slots=True)
class SendDownstream:
    """Send a message to the successor."""

    message: Message


@dataclass(frozen=True, slots=True)
class CloseDownstream:
    """Close the connection to the successor after the queued messages are sent."""


@dataclass(frozen=True, slots=True)
class Admit:
    """Make the newly joined node the predecessor; send `last_message` to the previous one, if any, and close it."""

    last_message: Message | None


@dataclass(frozen=True, slots=True)
class Refuse:
    """Send this message to the newly joined node and close its connection."""

    message: Message


@dataclass(frozen=True, slots=True)
class SendUpstream:
    """Send a message to the predecessor."""

    message: Message


@dataclass(frozen=True, slots=True)
class CloseUpstream:
    """Close the connection from the predecessor after the queued messages are sent."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """Connect to the source and request these bytes."""

    offset: int
    stop: int


@dataclass(frozen=True, slots=True)
class Skip:
    """Skip to this offset; other transports have delivered all bytes before it."""

    offset: int


@dataclass(frozen=True, slots=True)
class CloseFetch:
    """Close the connection to the source."""


@dataclass(frozen=True, slots=True)
class Complete:
    """Finish at byte `stop` of this phase; `final`: also of the file or stream. `DataStored` answers."""

    stop: int
    final: bool


@dataclass(frozen=True, slots=True)
class Notify:
    """Report to the session. `Ended` is the last report: close everything."""

    event: PipelineEvent


_Down = Connect | ProbeNodes | Serve | SendDownstream | CloseDownstream
_Up = Admit | Refuse | SendUpstream | CloseUpstream | Fetch | Skip | CloseFetch | Complete

Command = _Down | _Up | Notify
