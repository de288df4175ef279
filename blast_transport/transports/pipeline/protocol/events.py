"""Events of a node's core, and the commands that it gives to its shell."""

from __future__ import annotations

from blast_transport.base.frozen_record import FrozenRecord
from blast_transport.transports.pipeline.protocol.messages import Message
from blast_transport.transports.pipeline.protocol.phase import PipelineEvent

# Events of the successor's side.


class Started(FrozenRecord):
    """The node starts."""


class FromSuccessor(FrozenRecord):
    """A message from the successor arrived."""

    message: Message


class SuccessorLost(FrozenRecord):
    """The connection to the successor failed, or could not be made; `unanswered`: for the whole waiting time."""

    reason: str
    unanswered: bool = False


class BytesSent(FrozenRecord):
    """All bytes before `position` went to the successor."""

    position: int


class BytesNoLongerHeld(FrozenRecord):
    """The bytes that the successor needs next are no longer held; `first_held` is the smallest offset that is."""

    first_held: int


class BytesLost(FrozenRecord):
    """Announced bytes were lost before they went to the successor: its connection is closed."""


# Events of the predecessor's side, and of the source.


class Joined(FrozenRecord):
    """The node at this position connected as the predecessor."""

    place: int


class FromPredecessor(FrozenRecord):
    """A message other than data arrived from the predecessor."""

    message: Message


class PredecessorLost(FrozenRecord):
    """The connection from the predecessor ended."""


class BytesArrived(FrozenRecord):
    """All bytes before `position` are held."""

    position: int


class FromSource(FrozenRecord):
    """A message arrived from the source, on the connection that fetches from it."""

    message: Message


class FetchLost(FrozenRecord):
    """The connection to the source failed."""

    reason: str


class DataStored(FrozenRecord):
    """After `Complete`: all received data is stored."""


class Passing(FrozenRecord):
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


class Connect(FrozenRecord):
    """Connect to the node at `place` and send Join; it becomes the successor."""

    place: int


class ProbeNodes(FrozenRecord):
    """Test whether the nodes at these positions live, within `probe` seconds; a Connect to one may follow soon."""

    places: tuple[int, ...]


class Serve(FrozenRecord):
    """Send data from `offset` on to the successor."""

    offset: int


class SendDownstream(FrozenRecord):
    """Send a message to the successor."""

    message: Message


class CloseDownstream(FrozenRecord):
    """Close the connection to the successor after the queued messages are sent."""


class Admit(FrozenRecord):
    """Make the newly joined node the predecessor; send `last_message` to the previous one, if any, and close it."""

    last_message: Message | None


class Refuse(FrozenRecord):
    """Send this message to the newly joined node and close its connection."""

    message: Message


class SendUpstream(FrozenRecord):
    """Send a message to the predecessor."""

    message: Message


class CloseUpstream(FrozenRecord):
    """Close the connection from the predecessor after the queued messages are sent."""


class Fetch(FrozenRecord):
    """Connect to the source and request these bytes."""

    offset: int
    stop: int


class Skip(FrozenRecord):
    """Skip to this offset; other transports have delivered all bytes before it."""

    offset: int


class CloseFetch(FrozenRecord):
    """Close the connection to the source."""


class Complete(FrozenRecord):
    """Finish at byte `stop` of this phase; `final`: also of the file or stream. `DataStored` answers."""

    stop: int
    final: bool


class Notify(FrozenRecord):
    """Report to the session. `Ended` is the last report: close everything."""

    event: PipelineEvent


_Down = Connect | ProbeNodes | Serve | SendDownstream | CloseDownstream
_Up = Admit | Refuse | SendUpstream | CloseUpstream | Fetch | Skip | CloseFetch | Complete

Command = _Down | _Up | Notify
