"""Rack leader: relays between a sender and the members of its rack, so that the sender has one connection per rack.

One thread and one selector. The leader's own receiver is a member like the others and is connected in the same way.
Data that a member does not accept is queued here, within limits: the sender sends repairs only as fast as RelayCredit
reports, and a member whose queue still exceeds the limit is dropped. The leader reads from members only while the
sender reads. It sends RelayCredit regularly until every invited member has answered, so that its silence always means a
failure.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from blast_transport.base.errors import RemoteError, RemoteProtocolError
from blast_transport.links.control_connection import ControlConnection, LeaderConnection
from blast_transport.links.dialling import Dialer, Dialling
from blast_transport.links.group import REPORT_SECONDS, LeaderGroup
from blast_transport.wire.codec import FRAME, decode, encode, type_of
from blast_transport.wire.messages import Abort, Demoted, Hello, Message, Phase, Readmitted
from blast_transport.wire.relaying import Envelope, Member, Relay, RelayCredit

_DIAL_SECONDS = 2.0
"""Members are in the same rack."""
_CREDIT_BYTES = 1 << 16
"""Credits are returned in lumps: one for each message would double the messages."""
_WAKES = 4096
"""At once: a wake-up is one byte, and several are read together."""
_MAX_WAITING_BYTES = 8 << 20
"""Memory for a member that reads slowly; it loses its leader beyond."""
_MAX_TO_SENDER_BYTES = 1 << 20
"""With more waiting for the sender, the leader stops reading from its members."""
_READ_ALONG = frozenset(map(type_of, (Hello, Phase, Demoted, Readmitted, Abort)))


@dataclass(slots=True)
class _Member:
    """Member of the rack: its connection, callback for reading, accepted bytes not yet reported, and participation.

    `invited`: it got a Hello and has not answered.
    """

    connection: ControlConnection
    on_readable: Callable[[], None]
    taken: int = 0
    ready: bool = False
    invited: bool = False


class Leader:
    """Leads the members that `relay` names, for the sender at the other end of `sock`, which it owns."""

    def __init__(self, sock: socket.socket, relay: Relay, dialer: Dialer) -> None:
        self._sender = LeaderConnection(sock)
        self._members: dict[int, _Member] = {}
        # Members that are new, or have queued messages: usually few.
        self._touched: dict[int, None] = {}
        self._reading = True
        self._group = LeaderGroup()
        self._ended = False
        self._alive_at = 0.0
        self._wake_reader, self._wake_writer = socket.socketpair()
        for end in (self._wake_reader, self._wake_writer):
            end.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wake_reader, selectors.EVENT_READ, self._woken)
        self._dialling: Dialling[int] = Dialling(dialer, self._wake)
        self._addresses = relay.members

    def run(self) -> None:
        """Relay until the sender closes the connection, or `stop`."""
        for number, address in enumerate(self._addresses):
            self._dialling.begin(number, address, _DIAL_SECONDS)
        try:
            while not self._ended:
                self._pass_on()
                for key, events in self._selector.select(self._timeout()):
                    if events & selectors.EVENT_READ:
                        key.data()
        except RemoteError:
            # The end of their connections notifies the members.
            pass
        finally:
            self._close()

    def stop(self) -> None:
        """End soon. Any thread."""
        self._ended = True
        self._wake()

    # ------------------------------------------------------------------------------------------ from the sender

    def _receive_from_sender(self) -> None:
        for message in self._sender.receive():
            match message:
                case Envelope(numbers, frame):
                    self._deliver(numbers, frame)
                case Member(number):
                    self._drop(number)
                case _:
                    raise RemoteProtocolError(f"{type(message).__name__} is not for a leader")

    def _deliver(self, numbers: tuple[int, ...], frame: bytes) -> None:
        message = decode(frame) if FRAME.unpack_from(frame)[1] in _READ_ALONG else None
        if isinstance(message, Hello):
            message = replace(message, key=self._sender.hidden(message.session, message.key))
        for number in numbers:
            if (member := self._members.get(number)) is None:
                continue
            if message is not None:
                self._read_along(number, member, message)
            if isinstance(message, Hello):
                frame = encode(replace(message, key=member.connection.hidden(message.session, message.key)))
            member.connection.send_frame(frame)
            self._touched[number] = None
            if member.connection.queued_bytes > _MAX_WAITING_BYTES:
                self._lose(number, "does not accept the data sent to it")

    def _read_along(self, number: int, member: _Member, message: Message) -> None:
        self._group.from_sender(number, message)
        if isinstance(message, Hello):
            member.ready, member.invited = False, True
        elif isinstance(message, Phase):
            with suppress(OSError):
                member.connection.expedite(by_light=message.traits.windowed)

    # ------------------------------------------------------------------------------------------ from the members

    def _receive(self, number: int) -> None:
        # An earlier event of the same selection may have dropped it.
        if (member := self._members.get(number)) is None:
            return
        try:
            messages = member.connection.receive()
        except RemoteError as error:
            self._lose(number, str(error))
            return
        for message in messages:
            if isinstance(message, Abort) and not member.ready:
                # It refuses, possibly because the leader connects: the sender may try directly.
                self._lose(number, message.reason)
                return
            member.ready, member.invited = True, False
            if not self._group.from_member(number, message):
                self._sender.send(Envelope((number,), encode(message)))

    def _lose(self, number: int, reason: str) -> None:
        self._drop(number)
        self._sender.send(Member(number, reason or "was lost"))

    def _drop(self, number: int) -> None:
        self._group.lost(number)
        if (member := self._members.pop(number, None)) is not None:
            if member.connection.socket in self._selector.get_map():
                self._selector.unregister(member.connection.socket)
            member.connection.close()

    def _take_dialled(self) -> None:
        for number, outcome in self._dialling.take():
            if isinstance(outcome, str):
                self._sender.send(Member(number, outcome))
            else:
                self._members[number] = _Member(ControlConnection(outcome), partial(self._receive, number))
                self._touched[number] = None
                self._sender.send(Member(number))

    # ------------------------------------------------------------------------------------------------ the loop

    def _pass_on(self) -> None:
        """Send what waits, and watch for what can happen next."""
        self._take_dialled()
        touched, self._touched = self._touched, {}
        for number in touched:
            self._flush(number)
        for message in self._group.take(time.monotonic()):
            self._sender.send(message)
        self._sign_of_life(time.monotonic())
        self._sender.flush()
        self._watch(self._sender, self._receive_from_sender, reading=True)
        reading = self._sender.queued_bytes < _MAX_TO_SENDER_BYTES
        for number in touched if reading == self._reading else self._members:
            self._watch_member(number, reading)
        self._reading = reading

    def _sign_of_life(self, now: float) -> None:
        waited_for = next((number for number, member in self._members.items() if member.invited), None)
        if waited_for is not None and now >= self._alive_at:
            self._alive_at = now + REPORT_SECONDS
            self._send_credit(waited_for, self._members[waited_for])

    def _watch_member(self, number: int, reading: bool) -> None:
        # It may have been lost when it was flushed.
        if (member := self._members.get(number)) is None:
            return
        self._watch(member.connection, member.on_readable, reading)
        if member.connection.has_output:
            self._touched[number] = None

    def _flush(self, number: int) -> None:
        if (member := self._members.get(number)) is None or not member.connection.has_output:
            return
        connection = member.connection
        before = connection.queued_bytes
        try:
            connection.flush()
        except RemoteError as error:
            self._lose(number, str(error))
            return
        member.taken += before - connection.queued_bytes
        if member.taken >= _CREDIT_BYTES:
            self._send_credit(number, member)

    def _send_credit(self, number: int, member: _Member) -> None:
        self._sender.send(RelayCredit(number, member.taken))
        member.taken = 0

    def _watch(
        self, connection: ControlConnection | LeaderConnection, on_readable: Callable[[], None], reading: bool
    ) -> None:
        interest = selectors.EVENT_READ * reading | selectors.EVENT_WRITE * connection.has_output
        watched = self._selector.get_map().get(connection.socket)
        if watched is None and interest:
            self._selector.register(connection.socket, interest, on_readable)
        elif watched is not None and not interest:
            self._selector.unregister(connection.socket)
        elif watched is not None and watched.events != interest:
            self._selector.modify(connection.socket, interest, on_readable)

    def _timeout(self) -> float | None:
        deadlines = [] if (deadline := self._group.deadline()) is None else [deadline]
        if any(member.invited for member in self._members.values()):
            deadlines.append(self._alive_at)
        return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None

    def _wake(self) -> None:
        with suppress(OSError):
            self._wake_writer.send(b"\0")

    def _woken(self) -> None:
        with suppress(BlockingIOError):
            self._wake_reader.recv(_WAKES)

    def _close(self) -> None:
        self._dialling.close()
        for member in self._members.values():
            member.connection.close()
        self._sender.close()
        self._selector.close()
        self._wake_reader.close()
        self._wake_writer.close()
