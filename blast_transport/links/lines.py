"""A sender's connections, each to one receiver or to a leader with its members, behind one interface."""

from __future__ import annotations

import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from blast_transport.base.errors import RemoteProtocolError
from blast_transport.base.frozen_record import FrozenRecord
from blast_transport.links.control_connection import ControlConnection, LeaderConnection
from blast_transport.links.dialling import Address
from blast_transport.wire.codec import decode, encode
from blast_transport.wire.messages import Credit, Hello, Message, Repair
from blast_transport.wire.relaying import Envelope, GroupCredit, Member, MemberCredits, Relay, RelayCredit, RelayMessage


class ReceiverConnected(FrozenRecord):
    """A receiver has connected."""

    name: str


class ReceiverLost(FrozenRecord):
    """A receiver is not connected any more, or cannot be."""

    name: str
    reason: str


class MessageReceived(FrozenRecord):
    """A message from a receiver."""

    name: str
    message: Message


class Handled(FrozenRecord):
    """Each of these receivers has dealt with all blocks before the one that stands with it."""

    session: int
    blocks: dict[str, int]


Event = ReceiverConnected | ReceiverLost | MessageReceived | Handled


class Line(ABC):
    """One connection that serves receivers by name. It owns the socket."""

    def __init__(self, names: Sequence[str], connection: ControlConnection | LeaderConnection) -> None:
        self.names = tuple(names)
        self.last_received = time.monotonic()
        self._connection = connection

    @property
    def socket(self) -> socket.socket:
        """Return the socket for a selector."""
        return self._connection.socket

    @property
    def has_output(self) -> bool:
        """Return whether messages are queued."""
        return self._connection.has_output

    def expedite(self, by_light: bool) -> None:
        """Prioritize its packets, as a control connection does."""
        self._connection.expedite(by_light)

    def close(self) -> None:
        """Close the connection and drop queued messages."""
        self._connection.close()

    def flush(self) -> None:
        """Send queued messages as far as the socket accepts them. Raise RemoteError if the connection is lost."""
        self._connection.flush()

    @abstractmethod
    def send(self, name: str, message: Message) -> None:
        """Queue one message to a receiver."""

    @abstractmethod
    def queued_bytes(self, name: str) -> int:
        """Return the bytes to this receiver that its connection has not accepted."""

    @abstractmethod
    def receive(self) -> list[Event]:
        """Return the events since the last call. Raise RemoteError if the connection is lost."""

    @abstractmethod
    def let_go(self, name: str) -> bool:
        """Stop serving this receiver; return whether the line is then unused."""

    def _hidden(self, message: Message) -> Message:
        if isinstance(message, Hello):
            return replace(message, key=self._connection.hidden(message.session, message.key))
        return message


class DirectLine(Line):
    """Line to one receiver."""

    def __init__(self, name: str, sock: socket.socket) -> None:
        self._direct = ControlConnection(sock)
        super().__init__((name,), self._direct)

    def send(self, name: str, message: Message) -> None:
        """Queue one message to the receiver."""
        self._direct.send(self._hidden(message))

    def queued_bytes(self, name: str) -> int:
        """Return the bytes that the connection has not accepted."""
        return self._direct.queued_bytes

    def receive(self) -> list[Event]:
        """Return the messages of the receiver."""
        self.last_received = time.monotonic()
        return [MessageReceived(self.names[0], message) for message in self._direct.receive()]

    def let_go(self, name: str) -> bool:
        """Return True: the connection serves only this receiver."""
        return True


class LeaderLine(Line):
    """Line to the members of a leader; the first is the leader itself. `spoke`: the leader has sent a message."""

    def __init__(self, members: Sequence[Address], sock: socket.socket) -> None:
        self._leader = LeaderConnection(sock)
        super().__init__([name for name, _, _ in members], self._leader)
        self.spoke = False
        self._numbers = {name: number for number, name in enumerate(self.names)}
        self._present: set[str] = set()
        self._under_way = [0] * len(members)
        self._frame, self._recipients = b"", dict[int, None]()
        # Consecutive messages to several members are usually equal.
        self._message: Message | None = None
        self._encoded = b""
        self._leader.send(Relay(tuple(members)))

    @property
    def has_output(self) -> bool:
        """Return whether messages are queued."""
        return bool(self._recipients) or super().has_output

    def send(self, name: str, message: Message) -> None:
        """Queue one message; equal messages to consecutive members are sent once."""
        if isinstance(message, Hello):
            # The leader sends nothing between sessions.
            self.last_received = time.monotonic()
        number, encoded = self._numbers[name], self._encode(message)
        if encoded != self._frame or number in self._recipients:
            self._post()
            self._frame = encoded
        self._recipients[number] = None
        self._under_way[number] += len(encoded)

    def _encode(self, message: Message) -> bytes:
        if isinstance(message, Repair):
            # It is for one, and holds memory of the file.
            return encode(message)
        if message != self._message:
            self._message, self._encoded = message, encode(self._hidden(message))
        return self._encoded

    def queued_bytes(self, name: str) -> int:
        """Return the bytes that the member's connection to its leader has not accepted, or that are on their way."""
        return self._under_way[self._numbers[name]]

    def flush(self) -> None:
        """Send what the socket takes now."""
        self._post()
        super().flush()

    def receive(self) -> list[Event]:
        """Return the events of the leader and the members. Raise RemoteError."""
        self.last_received, self.spoke = time.monotonic(), True
        try:
            return [event for message in self._leader.receive() for event in self._events(message)]
        except IndexError:
            raise RemoteProtocolError("the leader names an unknown member") from None

    def let_go(self, name: str) -> bool:
        """Have the leader disconnect the member; return whether the line then serves none."""
        if name in self._present:
            self._present.remove(name)
            self._post()
            self._leader.send(Member(self._numbers[name], "is no longer served"))
        return not self._present

    def _post(self) -> None:
        if self._recipients:
            self._leader.send(Envelope(tuple(self._recipients), self._frame))
            self._recipients = {}

    def _events(self, message: RelayMessage) -> list[Event]:
        match message:
            case Envelope((number,), frame):
                return self._if_present(self.names[number], decode(frame))
            case Member(number, ""):
                self._present.add(self.names[number])
                return [ReceiverConnected(self.names[number])]
            case Member(number, reason):
                self._present.discard(self.names[number])
                return [ReceiverLost(self.names[number], reason)]
            case RelayCredit(number, count):
                self._under_way[number] = max(0, self._under_way[number] - count)
                return []
            case GroupCredit(session, handled, ahead, behind):
                late = {self.names[number] for number in behind}
                return [Handled(session, {name: handled if name in late else ahead for name in self._present})]
            case MemberCredits(session, rows):
                return [
                    event
                    for number, *credit in rows
                    for event in self._if_present(self.names[number], Credit(session, *credit))
                ]
        raise RemoteProtocolError(f"{type(message).__name__} is not for a sender")

    def _if_present(self, name: str, message: Message) -> list[Event]:
        return [MessageReceived(name, message)] if name in self._present else []
