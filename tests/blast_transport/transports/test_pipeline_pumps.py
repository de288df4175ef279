"""The compiled pump of pipeline links, compared with the Python reference for any splits and errors."""

from __future__ import annotations

import os
import select
import socket
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blast_transport.base.engines import COMPILED, PYTHON
from blast_transport.base.errors import SourceChangedError
from blast_transport.blocks.digests import DIGEST_BYTES
from blast_transport.blocks.layout import BlockLayout
from blast_transport.transports.pipeline.connections import link as link_module
from blast_transport.transports.pipeline.connections.compiled_pump import CompiledIntake, open_intake
from blast_transport.transports.pipeline.connections.feed import Feed
from blast_transport.transports.pipeline.connections.link import Link
from blast_transport.transports.pipeline.connections.outlets import open_digesting_outlet, open_outlet
from blast_transport.transports.pipeline.protocol.messages import (
    Data,
    End,
    Message,
    PipelineDecoder,
    PipelineHeartbeat,
    Report,
    encode,
)
from tests.support.transport.engines import file_store
from tests.support.transport.transport_data import SUITE, data_of
from tests.support.waiting import eventually

pytestmark = pytest.mark.compiled

BLOCK = 40
MAX_BYTES = 3000
MESSAGES: tuple[Message, ...] = (
    PipelineHeartbeat(7, held_up=False),
    PipelineHeartbeat(8, held_up=True, starved=True),
    End(90, True),
    Report({}),
    Report({3: "gone"}),
)
WRONG = (
    encode(Data(5))[:4] + b"\x24\x00\x06\x00",  # another version
    b"\x00\x00\x00\x00\x24\x00\x07\x00",  # DATA without data
    b"\x00\x00\x00\x02\x24\x00\x07\x00",  # DATA of too much
    b"\x01\x00\x00\x00\x63\x00\x07\x00",  # no such message
)

pieces = st.one_of(
    st.integers(1, 900),
    st.sampled_from(MESSAGES),
    st.sampled_from([*map(encode, MESSAGES), *WRONG]),
)


class Receiver:
    """The receiving end of a link and a store of one engine, and the events of the node."""

    def __init__(self, engine: str, layout: BlockLayout, undo: ExitStack) -> None:
        directory = Path(undo.enter_context(tempfile.TemporaryDirectory()))
        self.store = file_store(engine, directory, layout)
        undo.callback(self.store.discard)
        self.events: list[object] = []
        self.position = 0
        ours, self.theirs = socket.socketpair()
        undo.callback(ours.close)
        undo.callback(self.theirs.close)
        self.intake = open_intake(self.store, 0, lambda: None)
        assert isinstance(self.intake, CompiledIntake) == (engine == COMPILED)
        self.feed = Feed(self.intake, lambda: True, self._arrived, self.events.append, self.events.append)
        self.feed.link = Link(ours)

    def _arrived(self) -> None:
        assert self.intake.position > self.position
        self.position = self.intake.position

    def take(self, data: bytes) -> None:
        """Send these bytes to the link, and have the node process all of them."""
        if self.feed.link is not None:
            self.theirs.sendall(data)
        self.work()

    def end(self, torn: bool) -> None:
        """Close the other side; `torn` leaves unread data, which resets the connection."""
        if self.feed.link is not None:
            if torn:
                self.feed.link.socket.send(b"x")
            self.theirs.close()
        self.work()

    def work(self) -> None:
        before: object = None
        while before != (before := (self.intake.position, len(self.events))):
            self.feed.work(select.POLLIN)
        # A thread writes to a store that seems slow, as on a busy machine.
        eventually(lambda: self.intake.drained, "the received data to be written")

    @property
    def seen(self) -> tuple[object, ...]:
        """Return the observable state, which must not differ between the engines."""
        store = self.store
        assert store.descriptor is not None
        file = os.pread(store.descriptor, 2 * MAX_BYTES, 0)
        feed = self.feed.link.payload if self.feed.link is not None else None
        progress = (
            self.position,
            self.intake.position,
            self.intake.servable,
            self.intake.drained,
            list(map(str, self.events)),
        )
        # The engines may report wrong blocks in different ranges.
        wrong = {block for first, count in store.take_wrong() for block in range(first, first + count)}
        return progress, feed, file, list(store.held.ranges()), store.corrupt, wrong, store.position


@settings(max_examples=150, deadline=None)
@given(
    size=st.integers(1, MAX_BYTES),
    known=st.booleans(),
    stream=st.lists(pieces, max_size=12),
    splits=st.lists(st.integers(1, 700), min_size=1, max_size=6),
    digests=st.integers(0, MAX_BYTES // BLOCK),
    optical=st.lists(st.integers(0, MAX_BYTES // BLOCK), max_size=4),
    wrong=st.integers(0, MAX_BYTES),
    ends=st.sampled_from([None, False, True]),
)
def test_engines_process_received_bytes_alike(
    size: int,
    known: bool,
    stream: list[int | Message | bytes],
    splits: list[int],
    digests: int,
    optical: list[int],
    wrong: int,
    ends: bool | None,
) -> None:
    """After each piece, stored and wrong blocks, messages, and link errors are equal."""
    data = data_of(size)
    content = bytearray(data.content + bytes(range(256)) * 48)
    content[wrong] ^= 1
    layout = BlockLayout(size if known else None, data.layout.segment_size, data.layout.block_segments)
    wire = _wire(stream, bytes(content))
    with ExitStack() as undo:
        python, compiled = (Receiver(engine, layout, undo) for engine in (PYTHON, COMPILED))
        for one in (python, compiled):
            stop = min(digests, data.blocks)
            if stop:
                one.store.expect(0, data.digests(0, stop))
            for block in optical:
                if block < data.blocks:
                    one.store.put(block, data.block(block))
        begin = number = 0
        while begin < len(wire):
            end = begin + splits[number % len(splits)]
            for one in (python, compiled):
                one.take(wire[begin:end])
            assert python.seen == compiled.seen
            begin, number = end, number + 1
        if ends is not None:
            for one in (python, compiled):
                one.end(torn=ends)
            assert python.seen == compiled.seen


def _wire(stream: list[int | Message | bytes], content: bytes) -> bytes:
    parts, position = [], 0
    for one in stream:
        if isinstance(one, int):
            parts += [encode(Data(one)), content[position : position + one]]
            position += one
        else:
            parts.append(one if isinstance(one, bytes) else encode(one))
    return b"".join(parts)


class LinkSender:
    """The sending end of a link that serves a file with one engine, and the bytes that it sent.

    With a `layout` it sends as a chain's source, and collects `digests`.
    """

    def __init__(self, engine: str, file: int, undo: ExitStack, layout: BlockLayout | None = None) -> None:
        ours, self.theirs = socket.socketpair()
        for end in (ours, self.theirs):
            undo.callback(end.close)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 12)
        self.theirs.setblocking(False)
        self.digests = b""
        self.link, self.outlet = Link(ours), open_outlet(engine, file)
        if layout is not None:
            size = layout.size or 0
            self.outlet = open_digesting_outlet(engine, file, size, layout.block_size, self._digested)
        assert (self.outlet.frames is None) == (engine == PYTHON)
        self.offset, self.wire, self.error = 0, bytearray(), ""

    def _digested(self, first: int, digests: bytes) -> None:
        assert first * DIGEST_BYTES == len(self.digests)
        self.digests += digests

    def give(self, stop: int) -> None:
        """Send like to a successor, until the link accepts no more data or the file has failed."""
        if self.error:
            return
        try:
            while sent := self.link.give(self.outlet, self.offset, stop):
                self.offset += sent
        except SourceChangedError as error:
            self.error = str(error)

    def read(self, limit: int) -> None:
        """Read up to `limit` bytes at the other side."""
        try:
            self.wire += self.theirs.recv(limit)
        except BlockingIOError:
            """No bytes have arrived."""

    @property
    def decoded(self) -> tuple[bytes, list[Message]]:
        """Return the data, and the messages in between."""
        decoder, data, rest = PipelineDecoder(), bytearray(), bytes(self.wire)
        messages: list[Message] = []
        while rest:
            if decoder.payload:
                piece = rest[: decoder.payload]
                decoder.passed(len(piece))
                data += piece
            else:
                piece = rest[: decoder.needed]
                message = decoder.feed(piece)
                if message is not None and not isinstance(message, Data):
                    messages.append(message)
            rest = rest[len(piece) :]
        return bytes(data), messages


@settings(max_examples=60, deadline=None)
@given(
    size=st.integers(1, MAX_BYTES),
    chunk=st.integers(1, 900),
    steps=st.lists(st.tuples(st.integers(0, MAX_BYTES), st.integers(1, 3000), st.booleans()), min_size=1, max_size=8),
    shorter=st.booleans(),
)
def test_engines_send_same_data_of_file(
    size: int, chunk: int, steps: list[tuple[int, int, bool]], shorter: bool
) -> None:
    """Data, messages and their order, and the error for a truncated file are equal, also where the engine digests."""
    data = data_of(size)
    content = data.content
    with ExitStack() as undo:
        file = undo.enter_context(tempfile.TemporaryFile())
        file.write(content[: size // 2] if shorter else content)
        file.flush()
        undo.enter_context(pytest.MonkeyPatch.context()).setattr(link_module, "CHUNK_BYTES", chunk)
        senders = [LinkSender(engine, file.fileno(), undo) for engine in (PYTHON, COMPILED)]
        senders.append(LinkSender(COMPILED, file.fileno(), undo, data.layout))
        stop = 0
        for more, read, sends_end in [*steps, (size, 1, True)]:
            stop = min(size, stop + more)
            for one in senders:
                if sends_end:
                    one.link.send(End(stop, False))
                one.give(stop)
                one.read(read)
        for one in senders:
            for _ in range(MAX_BYTES):
                one.give(size)
                one.read(1 << 16)
                if one.error or (one.offset == size and not one.link.has_output):
                    break
            one.read(1 << 16)
        python, *others = senders
        for compiled in others:
            assert python.error == compiled.error and bool(python.error) == shorter
            if not shorter:
                assert python.decoded == compiled.decoded
                assert compiled.decoded[0] == content and compiled.offset == size
        assert shorter or others[1].digests == data.digests()


def test_store_of_python_engine_uses_python_intake(tmp_path: Path) -> None:
    """A store with other digests uses the Python engine, and so does its intake."""
    store = file_store(PYTHON, tmp_path, BlockLayout(100, 40, 1))
    assert store.suite is SUITE
    assert open_intake(store, 0, lambda: None).frames is None
    store.discard()
