"""Receivers whose messages are false, extreme, late, repeated or missing, among honest ones.

A hostile member is an agent behind a relay that parses and changes the frames that it sends, on connections in both
directions. The relay does not depend on the transport: control, pipeline and tree messages have different type numbers.
"""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

from blast_transport.base.engines import PYTHON
from blast_transport.base.errors import TransportError
from blast_transport.base.report import Received
from blast_transport.links.dialling import SOURCE, Address, Dialer
from blast_transport.session.route import Route
from blast_transport.session.sender import Sender
from blast_transport.session.settings import SenderSettings
from blast_transport.transports.choices import Chain, TransportChoice, Tree, Trees, Unicast
from blast_transport.transports.pipeline.protocol import messages as pipeline
from blast_transport.transports.trees.protocol import messages as trees
from blast_transport.wire import codec
from blast_transport.wire.codec import FRAME
from tests.support.transport.transport_hosts import LOOPBACK, MTU, Agent, FaultyLight, agent, light

MEMBERS = 7
RATE = 400e6
LATE_SECONDS = 0.25
FALSE, LARGEST, SMALLEST = "false", "largest", "smallest"
LATE, REPEATED, MISSING = "late", "repeated", "missing"
OF_FIELDS, OF_MESSAGES = (FALSE, LARGEST, SMALLEST), (LATE, REPEATED, MISSING)
_DATA, _BLOCK = 36, 50
_NAMES: dict[int, str] = {
    **{number: f"control {form.message.__name__}" for number, form in codec._FORMS.items()},
    **{number: f"pipeline {form.message.__name__}" for number, form in pipeline._FORMS.items()},
    **{number: f"tree {form.message.__name__}" for number, form in trees._FORMS.items()},
    _BLOCK: "tree Block",
}
_FORMS: dict[int, Any] = {**codec._FORMS, **pipeline._FORMS, **trees._FORMS}
_HUGE = (2**64 - 1, 2**63 - 1, 2**32 - 1, 2**31 - 1, 2**16 - 1, 255)


_CONTROL = {2, 4, 6, 7, 10, 11, 12}
KINDS = {
    "optical": _CONTROL,
    "unicast": _CONTROL,
    "pipeline": {*_CONTROL, 15, *range(32, 43)},
    "trees": {*_CONTROL, 15, 32, *range(48, 56)},
}
"""Types of the messages that a receiver may send, by transport."""


class Lie(NamedTuple):
    """A change of a hostile member's messages of one type; `field` is empty if it changes the whole message."""

    kind: int
    field: str
    how: str

    def __str__(self) -> str:
        return f"{_NAMES[self.kind]}{'.' * bool(self.field)}{self.field} {self.how}"


def lies(kinds: Iterable[int]) -> list[Lie]:
    """Return lies about every field of messages of these types, in every form."""
    found = []
    for kind in sorted(kinds):
        names = ["data"] if kind in (_DATA, _BLOCK) else _FORMS[kind].message.__match_args__
        found += [Lie(kind, name, how) for name in names for how in OF_FIELDS]
        found += [Lie(kind, "", how) for how in OF_MESSAGES]
    return found


class Rewriter:
    """A relay's direction that changes frames. `seen` collects their types."""

    def __init__(self, lie: Lie | None, seen: set[int]) -> None:
        self._lie, self._seen = lie, seen
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[float, bytes]]:
        """Yield (seconds to wait before, bytes)."""
        self._buffer += data
        while len(self._buffer) >= FRAME.size:
            length, kind, _ = FRAME.unpack_from(self._buffer)
            end = FRAME.size + length
            if len(self._buffer) < end:
                return
            frame = bytes(self._buffer[:end])
            del self._buffer[:end]
            self._seen.add(kind)
            yield from self._changed(kind, frame)

    def _changed(self, kind: int, frame: bytes) -> Iterator[tuple[float, bytes]]:
        lie = self._lie
        if lie is None or lie.kind != kind:
            yield 0.0, frame
        elif lie.how == LATE:
            yield LATE_SECONDS, frame
        elif lie.how == REPEATED:
            yield 0.0, frame * 3
        elif lie.how != MISSING:
            yield 0.0, lied(frame, lie)


def lied(frame: bytes, lie: Lie) -> bytes:
    """Return the frame with this field changed; unchanged, if no other value can be encoded."""
    if lie.kind in (_DATA, _BLOCK):
        return frame[:-1] + bytes([frame[-1] ^ 1])
    form = _FORMS[lie.kind]
    message = form.decode(frame[FRAME.size :])
    for value in _others(getattr(message, lie.field), lie.how):
        with suppress(Exception):
            values = {name: getattr(message, name) for name in type(message).__match_args__}
            body = form.encode(type(message)(**{**values, lie.field: value}))
            if len(body) <= form.largest:
                return FRAME.pack(len(body), lie.kind, codec.VERSION) + body
    return frame


def _others(value: Any, how: str) -> Iterator[Any]:
    """Return other values of the same type, the first ones first."""
    match value:
        case bool():
            yield not value
        case IntEnum():
            yield from (type(value)(one) for one in sorted(type(value), reverse=how == LARGEST) if one != value)
        case int():
            yield from {FALSE: (value // 2 + 1,), LARGEST: _HUGE, SMALLEST: (0,)}[how]
        case float() | None:
            yield {FALSE: 5e6, LARGEST: 1e300, SMALLEST: 1e-300}[how]
        case str():
            yield {FALSE: "other", LARGEST: "\x1b[2J\u202e" + "x" * 200, SMALLEST: ""}[how]
            yield "x" * 200
        case bytes() | bytearray():
            flipped = bytes([value[0] ^ 1]) + bytes(value[1:]) if value else b"x"
            yield from {FALSE: (flipped,), LARGEST: (b"x" * 16384, flipped), SMALLEST: (b"",)}[how]
        case tuple():
            huge = (((0, 2**40),), ((0, 2**30),), ((0, 2**20),))
            yield from {FALSE: (((0, 1),),), LARGEST: huge, SMALLEST: ((),)}[how]
        case dict():
            everyone = dict.fromkeys(range(1, MEMBERS + 1), "gone")
            yield from {FALSE: ({MEMBERS: "gone"},), LARGEST: (everyone,), SMALLEST: ({},)}[how]


Change = Callable[[bytes], Iterable[tuple[float, bytes]]]


class Relay:
    """A relay between an agent and its peers."""

    def __init__(self, lie: Lie | None, seen: set[int]) -> None:
        self._lie, self._seen = lie, seen
        self._listener = socket.create_server((LOOPBACK, 0))
        self.port = self._listener.getsockname()[1]
        self._open: set[socket.socket] = set()

    def serve(self, port: int) -> None:
        """Relay connections to the agent at this port."""
        threading.Thread(target=self._accept, args=(port,), daemon=True).start()

    def dialer(self, dial: Dialer) -> Dialer:
        """Return a dialer that relays the agent's connections."""

        def relayed(address: Address, seconds: float) -> socket.socket:
            far = dial(address, seconds)
            near, middle = socket.socketpair()
            self._join(middle, far)
            return near

        return relayed

    def close(self) -> None:
        """End everything."""
        for sock in (self._listener, *self._open):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def _accept(self, port: int) -> None:
        with suppress(OSError):
            while True:
                outside, _ = self._listener.accept()
                self._join(socket.create_connection((LOOPBACK, port)), outside)

    def _join(self, inside: socket.socket, outside: socket.socket) -> None:
        self._open |= {inside, outside}
        rewriter = Rewriter(self._lie, self._seen)
        for one, other, change in ((inside, outside, rewriter.feed), (outside, inside, lambda data: [(0.0, data)])):
            threading.Thread(target=self._pump, args=(one, other, change), daemon=True).start()

    @staticmethod
    def _pump(one: socket.socket, other: socket.socket, change: Change) -> None:
        with suppress(OSError):
            while data := one.recv(1 << 16):
                for seconds, piece in change(data):
                    if seconds:
                        time.sleep(seconds)  # late messages
                    other.sendall(piece)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@dataclass
class Outcome:
    """The result of a session: seconds until all honest members have the file, None if some lack it in time."""

    seconds: float | None
    lacking: list[str]
    wrong: list[str]
    seen: set[int] = field(default_factory=set)


def choice_of(transport: str) -> TransportChoice:
    """Return the choice of this transport for all members."""
    names = [f"r{number}" for number in range(MEMBERS)]
    orders = (names, names[::-1], names[3:] + names[:3])
    return {
        "optical": lambda: light(RATE),
        "pipeline": Chain,
        "trees": lambda: Trees(tuple(Tree(RATE / 3, dict(zip(one, (SOURCE, *one), strict=False))) for one in orders)),
        "unicast": Unicast,
    }[transport]()


@contextmanager
def member(directory: Path, lie: Lie | None, seen: set[int]) -> Iterator[tuple[Agent, Address]]:
    """Run a hostile agent, and yield its address."""
    relay = Relay(lie, seen)
    try:
        # Some light is lost, so that it asks for repairs.
        with agent(directory, FaultyLight(loss=0.02), by=relay.dialer, engine=PYTHON) as one:
            relay.serve(one.server.endpoint.port)
            yield one, (one.name, LOOPBACK, relay.port)
    finally:
        relay.close()


def session(folder: Path, content: bytes, transport: str, hostile: Mapping[int, Lie | None], limit: float) -> Outcome:
    """Send a file to seven members, of whom those at these places are hostile."""
    file = folder / "content"
    file.write_bytes(content)
    seen: set[int] = set()
    with ExitStack() as stack:
        honest: list[Agent] = []
        addresses = []
        for place in range(MEMBERS):
            if place in hostile:
                one, address = stack.enter_context(member(folder / f"r{place}", hostile[place], seen))
            else:
                one = stack.enter_context(agent(folder / f"r{place}"))
                honest.append(one)
                address = one.address
            addresses.append(address)
        sender = stack.enter_context(Sender(addresses, SenderSettings(LOOPBACK, MTU)))
        route = Route(choice_of(transport))
        began = time.monotonic()
        done: queue.SimpleQueue[object] = queue.SimpleQueue()

        def send() -> None:
            with suppress(TransportError):
                done.put(sender.send_file(file, route))

        thread = threading.Thread(target=send)
        thread.start()
        lacking = []
        for one in honest:
            try:
                event = one.events.get(timeout=max(0.0, began + limit - time.monotonic()))
                if not isinstance(event, Received):
                    lacking.append(f"{one.name}: {event}")
            except queue.Empty:
                lacking.append(f"{one.name}: nothing in {limit:g} s")
        seconds = time.monotonic() - began
        route.give_up("all honest members have it")
        thread.join()
        wrong = [
            str(path.relative_to(folder)) for path in sorted(folder.glob("r*/content")) if path.read_bytes() != content
        ]
        return Outcome(None if lacking else seconds, lacking, wrong, seen)
