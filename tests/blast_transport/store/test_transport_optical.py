"""Blocks over optical transport: segmentation, joining by the kernel, loss, and reassembly."""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blast_transport.base.errors import LightPathError, SealError
from blast_transport.blocks.layout import BlockLayout
from blast_transport.blocks.sealing import Sealer, new_key
from blast_transport.datagrams.burst import Burst
from blast_transport.datagrams.group_socket import GroupSocket
from blast_transport.datagrams.offload import UDP_SEGMENT, DatagramSender
from blast_transport.store.blocks.assembly import Assembly
from blast_transport.store.blocks.block_assembly import Piece
from blast_transport.store.blocks.store import SessionStore
from blast_transport.store.targets.memory_target import MemoryTarget
from blast_transport.wire.datagram import HEADER, wire_bytes
from tests.support.transport.transport_data import SUITE, Data, data_of

SESSION = 0xB1A57
SOURCE = ("10.0.0.9", 40000)
MAX_BYTES = 1 << 20


class Kernel:
    """The receiving side of a UDP socket: delivers given data, scattered like `recvmsg_into`."""

    def __init__(self, arrivals: Sequence[bytes] = ()) -> None:
        self.arrivals = list(arrivals)
        self.closed = False

    def connect(self, address: object) -> None:
        assert address == SOURCE

    def setsockopt(self, *_: object) -> None:
        """Accept super-packets."""

    def getsockopt(self, *_: object) -> int:
        return 1 << 20

    def close(self) -> None:
        self.closed = True

    def recvmsg_into(self, buffers: Sequence[memoryview]) -> tuple[int, list[object], int, object]:
        if not self.arrivals:
            raise BlockingIOError
        data = self.arrivals.pop(0)
        if data == b"refused":
            raise ConnectionRefusedError
        room, begin = sum(map(len, buffers)), 0
        flags = socket.MSG_TRUNC if len(data) > room else 0
        for buffer in buffers:
            piece = data[begin : begin + len(buffer)]
            buffer[: len(piece)] = piece
            begin += len(piece)
        return min(len(data), room), [], flags, SOURCE


class Wire:
    """The sending side of a UDP socket: records datagrams, and fails with the given errors."""

    def __init__(self, offload_error: int = 0, plain_error: int = 0, no_offload: bool = False) -> None:
        self.datagrams: list[bytes] = []
        self.calls = self.segment = 0
        self._offload_error, self._plain_error, self._no_offload = offload_error, plain_error, no_offload

    def setsockopt(self, _level: int, option: int, value: int) -> None:
        if self._no_offload:
            raise OSError(errno.ENOPROTOOPT, "no such option")
        assert option == UDP_SEGMENT
        self.segment = value

    def sendmsg(self, parts: Sequence[memoryview]) -> int:
        data = b"".join(parts)
        self.calls += 1
        error = self._offload_error if self.segment else self._plain_error
        if error:
            raise OSError(error, "refused")
        size = self.segment or len(data)
        self.datagrams += [data[begin : begin + size] for begin in range(0, len(data), size)]
        return len(data)


def light_socket(kernel: Kernel, layout: BlockLayout) -> GroupSocket:
    return GroupSocket(cast(socket.socket, kernel), SOURCE, SESSION, layout)


def taken(kernel: Kernel, layout: BlockLayout) -> tuple[dict[int, bytes], int]:
    """Return the received segments, and the number of refused datagrams."""
    found: dict[int, bytes] = {}

    def take(pieces: list[Piece]) -> None:
        size = layout.segment_size
        for first, count, payload in pieces:
            assert (count - 1) * size < len(payload) <= count * size
            for index in range(count):
                found[first + index] = bytes(payload[index * size : (index + 1) * size])

    light = light_socket(kernel, layout)
    while kernel.arrivals:
        light.read(take)
    return found, light.take_refused()


def datagrams_of(data: Data, block: int) -> list[bytes]:
    """Return the datagrams that a sender makes of a block."""
    burst, wire = Burst(SESSION, data.layout), Wire()
    plain = data.block(block)
    burst.payload[: len(plain)] = plain
    burst.load(block, len(plain))
    sender = DatagramSender(cast(socket.socket, wire), HEADER.size + data.layout.segment_size)
    sender.send(burst.parts(0, burst.segments))
    assert wire.calls == 1 and sender.offload
    assert burst.wire_bytes(0, burst.segments) == sum(wire_bytes(len(one) - HEADER.size) for one in wire.datagrams)
    return wire.datagrams


datas = st.builds(
    data_of, st.integers(1, 3000), st.sampled_from([1, 10, 17, 100]), st.integers(1, 8), seed=st.integers(0, 9)
)


@given(datas)
def test_block_is_sent_as_its_segments(data: Data) -> None:
    for block in range(data.blocks):
        found = datagrams_of(data, block)
        assert b"".join(one[HEADER.size :] for one in found) == data.block(block)
        first = block * data.layout.block_segments
        assert [HEADER.unpack_from(one) for one in found] == [
            (SESSION, 0, first + index) for index in range(data.layout.segments(block))
        ]


@given(datas, st.integers(0, 40), st.integers(1, 8), st.integers(1, 8))
def test_part_of_block_can_be_sent(data: Data, block: int, first: int, count: int) -> None:
    block %= data.blocks
    whole = datagrams_of(data, block)
    first %= len(whole)
    count = min(count, len(whole) - first)
    burst = Burst(SESSION, data.layout)
    burst.payload[: data.layout.length(block)] = data.block(block)
    burst.load(block, data.layout.length(block))
    joined = b"".join(burst.parts(first, count))
    assert joined == b"".join(whole[first : first + count])


@settings(max_examples=60)
@given(datas, st.randoms(use_true_random=False), st.floats(0, 0.5))
def test_receiver_splits_joined_datagrams_despite_loss(data: Data, chance, loss: float) -> None:
    """The kernel joins datagrams of equal length, of which the last may be shorter, also across gaps."""
    sent = {
        block * data.layout.block_segments + index: one
        for block in range(data.blocks)
        for index, one in enumerate(datagrams_of(data, block))
    }
    kept = {segment: one for segment, one in sent.items() if chance.random() >= loss}
    full = HEADER.size + data.layout.segment_size
    arrivals, row = [], list[bytes]()
    for one in kept.values():
        row.append(one)
        if len(one) < full or len(row) == data.layout.block_segments or chance.random() < 0.3:
            arrivals.append(b"".join(row))
            row = []
    arrivals.append(b"".join(row)) if row else None
    found, refused = taken(Kernel(arrivals), data.layout)
    assert found == {segment: one[HEADER.size :] for segment, one in kept.items()}
    assert refused == 0


FULL = HEADER.pack(SESSION, 0, 0) + bytes(10)


@pytest.mark.parametrize(
    ("arrival", "refused"),
    [
        (b"", 1),
        (b"x", 1),
        (HEADER.pack(SESSION, 0, 0), 1),
        (FULL * 4 + b"x", 1),
        (FULL + FULL[:16], 1),
        (FULL + FULL[:10], 1),
        (FULL * 5, 1),
        (bytes(65507), 1),
        (HEADER.pack(SESSION + 1, 0, 0) + bytes(10), 1),
        (HEADER.pack(SESSION, 1, 0) + bytes(10), 1),
        (FULL + HEADER.pack(SESSION, 1 << 31, 1) + bytes(10), 2),
    ],
)
def test_foreign_or_malformed_datagrams_are_counted_and_dropped(arrival: bytes, refused: int) -> None:
    layout = BlockLayout(1000, 10, 4)
    good = HEADER.pack(SESSION, 0, 7) + b"0123456789"
    assert taken(Kernel([arrival, b"refused", good]), layout) == ({7: b"0123456789"}, refused)


# ----------------------------------------------------------------------------------------------------- sending


@pytest.mark.parametrize("error", [errno.EIO, errno.EINVAL, errno.EMSGSIZE, errno.EOPNOTSUPP])
def test_sender_falls_back_to_single_datagrams(error: int) -> None:
    data = data_of(400)
    usual = [datagrams_of(data, block) for block in range(data.blocks)]
    wire = Wire(offload_error=error)
    sender = DatagramSender(cast(socket.socket, wire), HEADER.size + 10)
    assert sender.offload
    burst = Burst(SESSION, data.layout)
    for block in range(data.blocks):
        burst.payload[: data.layout.length(block)] = data.block(block)
        burst.load(block, data.layout.length(block))
        sender.send(burst.parts(0, burst.segments))
        assert not sender.offload
    assert wire.datagrams == [one for block in usual for one in block]
    assert wire.calls == 1 + len(wire.datagrams), "only the first call tries a super-packet"


def test_kernel_without_offload_gets_no_super_packets() -> None:
    sender = DatagramSender(cast(socket.socket, Wire(no_offload=True)), 100)
    assert not sender.offload


@pytest.mark.parametrize("wire", [Wire(offload_error=errno.ENETDOWN), Wire(errno.EIO, plain_error=errno.EMSGSIZE)])
def test_failing_interface_raises_light_path_error(wire: Wire) -> None:
    sender = DatagramSender(cast(socket.socket, wire), 26)
    with pytest.raises(LightPathError, match="26 bytes"):
        sender.send([memoryview(bytes(16)), memoryview(bytes(10))])


# -------------------------------------------------------------------------------------------------- assembling


def assembly_of(data: Data, layout: BlockLayout | None = None, sealer: Sealer | None = None) -> Assembly:
    return Assembly(SessionStore(layout or data.layout, SUITE, MemoryTarget("m", MAX_BYTES)), sealer)


def wire_of(data: Data, sealer: Sealer | None, block: int) -> bytes:
    plain = data.block(block)
    return plain if sealer is None else sealer.seal(block, plain)


pieces = st.lists(st.tuples(st.integers(0, 400), st.integers(1, 12)), max_size=30)
whole_blocks = st.lists(st.tuples(st.integers(0, 100), st.integers(1, 8)), max_size=30)


@given(datas, whole_blocks, pieces, st.booleans())
def test_batch_of_pieces_equals_single_pieces(
    data: Data, blocks: list[tuple[int, int]], parts: list[tuple[int, int]], sealed: bool
) -> None:
    size, count = data.layout.segment_size, data.layout.block_segments
    sealer = Sealer(new_key()) if sealed and size * count > 16 else None
    layout = BlockLayout(len(data.content), size, count, 16 if sealer else 0)
    data = Data(data.content, layout)
    wire = [wire_of(data, sealer, block) for block in range(data.blocks)]
    pieces = list[Piece]()
    for first, number in blocks:
        row = range(first % data.blocks, min(first % data.blocks + number, data.blocks))
        pieces += [(block * count, layout.segments(block), wire[block]) for block in row]
    for first, number in parts:
        block, index = divmod(first, count)
        if block < data.blocks and (payload := wire[block][index * size : (index + number) * size]):
            pieces.insert(first % (len(pieces) + 1), (first, -(-len(payload) // size), payload))
    together, alone = assembly_of(data, layout, sealer), assembly_of(data, layout, sealer)
    assert together.add_all(pieces) == sum([alone.add(*piece) for piece in pieces])
    assert (together.duplicates, together.refused) == (alone.duplicates, alone.refused)
    assert together.missing(0, data.blocks * count) == alone.missing(0, data.blocks * count)
    assert cast(MemoryTarget, together.store.target).data == cast(MemoryTarget, alone.store.target).data


@settings(max_examples=80)
@given(datas, pieces, st.booleans(), st.booleans())
def test_blocks_are_assembled_from_any_pieces(
    data: Data, arrivals: list[tuple[int, int]], stream: bool, sealed: bool
) -> None:
    """Runs of any segments, also across blocks; exactly the missing segments are reported."""
    size, count = data.layout.segment_size, data.layout.block_segments
    sealer = Sealer(new_key()) if sealed and size * count > 16 else None
    layout = BlockLayout(None if stream else len(data.content), size, count, 16 if sealer else 0)
    data = Data(data.content, layout.closed(len(data.content)))
    assembly, here = assembly_of(data, layout, sealer), set[int]()
    segments = {
        block * count + index: wire_of(data, sealer, block)[index * size : (index + 1) * size]
        for block in range(data.blocks)
        for index in range(data.layout.segments(block))
    }
    for first, number in arrivals:
        row = []
        while len(row) < number and (first + len(row)) in segments:
            row.append(segments[first + len(row)])
            if len(row[-1]) < size:
                break
        if not row:
            continue
        new = assembly.add(first, len(row), b"".join(row))
        mine = set(range(first, first + len(row)))
        assert new == len(mine - here)
        here |= mine
    missing = {s for first, number in assembly.missing(0, data.blocks * count) for s in range(first, first + number)}
    assert segments.keys() - here == missing & segments.keys()
    assert missing <= segments.keys() or stream
    if stream:
        assembly.settle(len(data.content))
    for segment in sorted(segments.keys() - here):
        assert assembly.add(segment, 1, segments[segment]) == 1
    assert assembly.missing(0, data.blocks * count) == []
    assembly.store.expect(0, data.digests())
    assert assembly.store.complete
    assert cast(MemoryTarget, assembly.store.target).data == data.content
    assert assembly.refused == 0


@given(datas, st.integers(0, 1 << 30), st.integers(1, 100), st.integers(0, 2000))
def test_pieces_that_do_not_fit_session_are_refused(data: Data, first: int, count: int, length: int) -> None:
    """Each accepted piece has the right length."""
    assembly = assembly_of(data)
    size, of_block = data.layout.segment_size, data.layout.block_segments
    new = assembly.add(first, count, bytes(length))
    assert new + assembly.refused <= count
    if new:
        block, index = divmod(first, of_block)
        assert block < data.blocks
        end = index * size + length
        assert end <= data.layout.wire_length(block) or length > (of_block - index) * size
    if first // of_block >= data.blocks:
        assert new == 0 and assembly.refused == count


def test_memory_of_unfinished_blocks_is_bounded() -> None:
    layout = BlockLayout(1 << 40, 1456, 44)
    assembly = Assembly(SessionStore(layout, SUITE, MemoryTarget("m", 1 << 50)))
    for block in range(3000):
        assembly.add(block * 44, 1, bytes(1456))
    assert assembly.refused > 1500
    assert (3000 - assembly.refused) * 44 * 1456 <= 64 << 20


def test_earlier_block_evicts_farthest_unfinished_block() -> None:
    layout = BlockLayout(1 << 40, 1456, 44)
    assembly = Assembly(SessionStore(layout, SUITE, MemoryTarget("m", 1 << 50)))
    capacity = (64 << 20) // (44 * 1456)
    for block in range(1000, 1000 + capacity):
        assembly.add(block * 44, 1, bytes(1456))
    assert assembly.refused == 0
    for block in range(10):
        assert assembly.add(block * 44, 1, bytes(1456)) == 1
    assert assembly.refused == 10
    farthest = (1000 + capacity - 1) * 44
    assert assembly.missing(farthest, farthest + 1) == [(farthest, 1)]
    assert assembly.missing(1000 * 44, 1000 * 44 + 1) == [] == assembly.missing(0, 1)


def test_no_segment_is_missing_behind_short_last_block() -> None:
    """A forged datagram may have had a segment number there."""
    layout = BlockLayout(4 * 640 + 25, 10, 64)
    assembly = Assembly(SessionStore(layout, SUITE, MemoryTarget("m", 1 << 20)))
    assembly.add(256, 1, bytes(10))
    assert assembly.missing(256, 320) == [(257, 2)]
    assert assembly.missing(258, 300) == [(258, 1)]
    assert assembly.missing(259, 300) == assembly.missing(290, 300) == []


def test_block_of_other_transport_is_not_missing() -> None:
    data = data_of(400)
    assembly = assembly_of(data)
    assembly.add(8, 1, data.block(2)[:10])
    assert assembly.missing(8, 12) == [(9, 3)]
    assembly.store.put(2, data.block(2))
    assert assembly.missing(8, 12) == assembly.missing(9, 10) == []


def test_modified_sealed_block_is_requested_again() -> None:
    data, sealer = Data(data_of(500).content, BlockLayout(500, 20, 4, 16)), Sealer(new_key())
    assembly = assembly_of(data, sealer=sealer)
    sealed = bytearray(wire_of(data, sealer, 2))
    sealed[5] ^= 1
    assembly.add(8, 4, sealed)
    assert not assembly.store.has(2)
    assert assembly.store.take_wrong() == [(2, 1)]
    assembly.add(8, 4, wire_of(data, sealer, 2))
    assert assembly.store.has(2)


def test_seal_is_bound_to_block_and_session() -> None:
    sealer, other = Sealer(new_key()), Sealer(new_key())
    sealed = sealer.seal(7, b"secret")
    assert sealer.open(7, sealed) == b"secret" and b"secret" not in sealed
    for opener, block in ((sealer, 8), (other, 7)):
        with pytest.raises(SealError):
            opener.open(block, sealed)
