"""Two transports from outside the package, added to this process; as a program, `blast_transport` with them.

`relay` is a tree in which every receiver forwards the blocks, planned again on demand: blocking sockets, a thread at
every node, and a lost node takes its branch with it; the session repairs the rest. `outside` is a star that reads,
digests and writes files by itself, without the session's reader and store. A block is {number u64, length u32} and its
bytes; the number `END` ends the stream.
"""

from __future__ import annotations

import hmac
import os
import queue
import socket
import struct
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import ClassVar

from blast_transport.base.errors import RemoteProtocolError, StoreError, TransportError, WrongInputError
from blast_transport.base.threads import start_thread
from blast_transport.links.dialling import Address, Dialer
from blast_transport.standalone.command import main
from blast_transport.store.sources.block_reader import UndigestedSource
from blast_transport.transports.choices import TransportChoice
from blast_transport.transports.receiving import (
    BlocksStored,
    ReceivingContext,
    ReceivingTransport,
    StoreLost,
    TransportEvent,
)
from blast_transport.transports.sending import Digested, PeerLost, SendingContext, SendingEvent, SendingTransport, Sent
from blast_transport.wire.codec import FRAME, VERSION
from blast_transport.wire.fields import from_parameters, to_parameters
from blast_transport.wire.joining import JOIN_TYPE, Join, encode_join
from blast_transport.wire.messages import Phase
from blast_transport.wire.transports import TRANSPORTS, Traits

HEAD = struct.Struct("<QI")
END = (1 << 64) - 1
TIMEOUT_SECONDS = 1.0
_BLOCKS_PER_STEP = 32


@dataclass(frozen=True, slots=True)
class Relay(TransportChoice):
    """A tree in which every node has `width` children."""

    transport: ClassVar[str] = "relay"
    width: int = 2


@dataclass(frozen=True, slots=True)
class Outside(Relay):
    """A tree in which the sender serves all receivers."""

    transport: ClassVar[str] = "outside"
    width: int = 1000


@dataclass(frozen=True, slots=True)
class RelayParameters:
    """The receivers in the order of a heap's places from 1 on, the sender being 0, and our own place."""

    members: tuple[tuple[str, str, int], ...]
    width: int
    place: int

    def branch(self, place: int) -> list[str]:
        """Return the places at and below a place."""
        if place > len(self.members):
            return []
        below = [self.branch(child) for child in self.children(place)]
        return [self.members[place - 1][0], *(name for names in below for name in names)]

    def children(self, place: int) -> range:
        """Return the places of the children, some of which may be missing."""
        return range(place * self.width + 1, place * self.width + self.width + 1)


class Children:
    """The children of a node; a child that reads nothing for a second is lost with its branch."""

    def __init__(self, phase: Phase, plan: RelayParameters, dial: Dialer) -> None:
        self.lost: list[str] = []
        self._phase, self._plan = phase, plan
        self._sockets: dict[int, socket.socket] = {}
        for place in plan.children(plan.place):
            if place <= len(plan.members):
                self._connect(place, plan.members[place - 1], dial)

    def send(self, head: tuple[int, int], data: memoryview) -> None:
        """Send to all remaining children."""
        for place, sock in list(self._sockets.items()):
            try:
                sock.sendall(HEAD.pack(*head) + bytes(data))
            except OSError:
                self._sockets.pop(place).close()
                self.lost += self._plan.branch(place)

    def close(self) -> None:
        """Close all connections."""
        for sock in self._sockets.values():
            sock.close()

    def _connect(self, place: int, address: Address, dial: Dialer) -> None:
        try:
            sock = dial(address, TIMEOUT_SECONDS)
            sock.settimeout(TIMEOUT_SECONDS)
            sock.sendall(first_word(self._phase, str(self._plan.place)))
        except (OSError, TransportError):
            self.lost += self._plan.branch(place)
        else:
            self._sockets[place] = sock


class RelaySender(SendingTransport):
    """The root: reads and sends in a thread, digests in the session's."""

    def __init__(self, phase: Phase, choice: Relay, around: SendingContext) -> None:
        super().__init__(phase)
        self._choice, self._around, self._reader = choice, around, around.reader
        self._plan = RelayParameters(tuple(member.address for member in around.members), choice.width, 0)
        self._places = {name: place for place, (name, _, _) in enumerate(self._plan.members, 1)}
        self._happened: queue.SimpleQueue[SendingEvent | None] = queue.SimpleQueue()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def phase(self, name: str) -> Phase | None:
        """Return the phase for a node's own place."""
        place = self._places.get(name)
        if place is None:
            return None
        return replace(self._phase, parameters=to_parameters(replace(self._plan, place=place)))

    def follow(self, choice: TransportChoice) -> bool:
        """Return True if this phase can serve the choice: another plan needs another phase."""
        return choice == self._choice

    def work(self, now: float) -> float:
        """Compute the digests of outgoing blocks."""
        if self._thread is None:
            self._thread = start_thread("relay", self._run)
        return 0.0 if self._reader.digest(_BLOCKS_PER_STEP) else 0.02

    def events(self) -> Iterator[SendingEvent]:
        """Yield the events of the thread, until None ends the phase."""
        while not self._happened.empty():
            event = self._happened.get()
            if event is None:
                self.over = True
            else:
                yield event

    def leave(self) -> int | None:
        """Stop the phase: the thread forwards the data it has, and the session repairs the rest."""
        self._ended.set()
        return None

    def close(self) -> None:
        """End the thread soon."""
        self._ended.set()

    def _run(self) -> None:
        try:
            self._bring()
        except TransportError as error:
            self._emit(*(PeerLost(name, str(error)) for name in self._places))
        finally:
            self._emit(None)

    def _bring(self) -> None:
        reader, source, block = self._reader, UndigestedSource(self._reader), self._phase.first
        view = memoryview(bytearray(reader.layout.block_size))
        children = Children(self._phase, self._plan, self._around.dial)
        while not self._ended.is_set() and not reader.last(block):
            if not reader.ready(block):
                self._ended.wait(0.005)
                continue
            length = self._read(block, view)
            children.send((block, length), view[:length])
            block += 1
            source.release(reader.layout.offset(block))
            self._emit(Sent(block), *(PeerLost(name, "its branch was lost") for name in children.lost))
            children.lost.clear()
        children.send((END, 0), view[:0])
        children.close()

    def _read(self, block: int, view: memoryview) -> int:
        return UndigestedSource(self._reader).read(self._reader.layout.offset(block), view)

    def _emit(self, *events: SendingEvent | None) -> None:
        for event in events:
            self._happened.put(event)
        self._around.wake()


class RelayReceiver(ReceivingTransport):
    """A node that reads from its parent, and forwards."""

    def __init__(self, phase: Phase, around: ReceivingContext) -> None:
        self._phase, self._around = phase, around
        self._plan = from_parameters(RelayParameters, phase.parameters)
        self._happened: queue.SimpleQueue[TransportEvent] = queue.SimpleQueue()
        self._parents: list[socket.socket] = []

    def events(self) -> Iterable[TransportEvent]:
        """Yield the events of the thread."""
        while not self._happened.empty():
            yield self._happened.get()

    def join(self, sock: socket.socket, join: Join) -> None:
        """Accept the connection of the parent."""
        if not hmac.compare_digest(join.token, self._phase.token):
            raise RemoteProtocolError(f"{join.name!r} does not know the token of phase {join.phase}")
        self._parents.append(sock)
        start_thread("relay", self._run, sock)

    def close(self, reason: str) -> None:
        """End the thread soon."""
        for sock in self._parents:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _run(self, sock: socket.socket) -> None:
        children = Children(self._phase, self._plan, self._around.dial)
        with sock, suppress(OSError, EOFError):
            while (head := HEAD.unpack(read_bytes(sock, HEAD.size)))[0] != END:
                block, length = head
                data = read_bytes(sock, length)
                try:
                    self._keep(block, data)
                except StoreError as error:
                    self._happened.put(StoreLost(str(error)))
                    break
                self._happened.put(BlocksStored())
                self._around.wake()
                children.send(head, data)
            children.send((END, 0), memoryview(b""))
        children.close()

    def _keep(self, block: int, data: memoryview) -> None:
        self._around.assembly.store.put(block, data)


class OutsideSender(RelaySender):
    """A sender that reads and digests in its own thread, from the file itself."""

    def __init__(self, phase: Phase, choice: Outside, around: SendingContext) -> None:
        super().__init__(phase, choice, around)
        if self._reader.source.descriptor is None:
            raise WrongInputError("another program reads files only")
        # By the time that its thread begins, the number may be another file's.
        self._file = os.fdopen(os.dup(self._reader.source.descriptor), "rb", 0)

    def work(self, now: float) -> float:
        """Compute the digests of blocks that another transport has left out; sending computes the others."""
        if self._thread is None:
            while self._reader.digested < self._phase.first:
                self._reader.digest(self._phase.first - self._reader.digested)
            self._thread = start_thread("outside", self._run)
        return 0.02

    def _run(self) -> None:
        with self._file:
            super()._run()

    def _read(self, block: int, view: memoryview) -> int:
        length = os.preadv(self._file.fileno(), [view], self._reader.layout.offset(block))
        if block >= self._reader.digested:
            self._emit(Digested(block, self._reader.suite.block(view[:length])))
        return length


class OutsideReceiver(RelayReceiver):
    """A receiver that writes files itself if the store permits it."""

    def __init__(self, phase: Phase, around: ReceivingContext) -> None:
        if around.assembly.store.descriptor is None:
            raise WrongInputError("another program writes files only")
        super().__init__(phase, around)
        self._file = os.fdopen(os.dup(around.assembly.store.descriptor), "r+b", 0)

    def close(self, reason: str) -> None:
        """End the thread soon."""
        super().close(reason)
        if not self._parents:
            self._file.close()

    def _run(self, sock: socket.socket) -> None:
        with self._file:
            super()._run(sock)

    def _keep(self, block: int, data: memoryview) -> None:
        store = self._around.assembly.store
        try:
            if store.claim(block, block + 1):
                os.pwrite(self._file.fileno(), data, store.layout.offset(block))
                store.written(block, store.suite.block(data))
        finally:
            store.release(block, block + 1)


def first_word(phase: Phase, name: str) -> bytes:
    """Return the first message of a connection, which selects the session and phase."""
    body = encode_join(Join(phase.session, phase.number, phase.token, name))
    return FRAME.pack(len(body), JOIN_TYPE, VERSION) + body


def read_bytes(sock: socket.socket, size: int) -> memoryview:
    """Read exactly `size` bytes. Raises EOFError, OSError."""
    data = memoryview(bytearray(size))
    got = 0
    while got < size:
        count = sock.recv_into(data[got:])
        if not count:
            raise EOFError
        got += count
    return data


for choice in (Relay, Outside):
    classes = (f"tests.support.transport.toy_transports:{choice.__name__}{end}" for end in ("", "Sender", "Receiver"))
    TRANSPORTS[choice.transport] = Traits(*classes, repairs_itself=True)

if __name__ == "__main__":
    sys.exit(main())
