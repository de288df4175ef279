"""Fuzz tests of optical datagrams: both engines accept the same, refuse the same, and never fail."""

from __future__ import annotations

import random
import select
import socket
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from blast_transport.base.engines import COMPILED, PYTHON
from blast_transport.blocks.layout import BlockLayout
from blast_transport.datagrams.compiled_intake import open_datagrams
from blast_transport.datagrams.intake import DatagramIntake
from blast_transport.store.blocks.block_assembly import BlockAssembly
from blast_transport.store.opening import open_assembly
from blast_transport.wire.datagram import HEADER
from tests.support.fuzzing import inputs
from tests.support.transport.datagrams import bound_socket, delivered, on_one_processor
from tests.support.transport.engines import file_store

pytestmark = pytest.mark.compiled

INPUTS = inputs(20_000)
SESSION = 0xB1A57
LAYOUT = BlockLayout(4000, 10, 4)
SEGMENTS = 400
DATAGRAM = HEADER.size + LAYOUT.segment_size
AT_ONCE = 20
OF_ONE_SESSION = 2000


def sample(chance: random.Random) -> bytes:
    """Return a sequence of segments of a sender."""
    first = chance.randrange(SEGMENTS)
    count = chance.randint(1, 4)
    return b"".join(HEADER.pack(SESSION, 0, first + n) + chance.randbytes(10) for n in range(count))


def changed(chance: random.Random, data: bytes) -> bytes:
    result = bytearray(data)
    for _ in range(chance.randint(0, 3)):
        place = chance.randrange(len(result) + 1)
        match chance.randrange(5):
            case 0 if place < len(result):
                result[place] = chance.choice([0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)])
            case 1:
                del result[place:]
            case 2:
                result[place:place] = chance.randbytes(chance.randrange(30))
            case 3:
                result += sample(chance)
            case _:
                header = chance.randrange(max(1, len(result) // DATAGRAM)) * DATAGRAM
                number = chance.choice([chance.randrange(SEGMENTS), 1 << 32, (1 << 64) - 1, chance.getrandbits(64)])
                if header + HEADER.size <= len(result):
                    HEADER.pack_into(result, header, SESSION, 0, number)
    return bytes(result)


class Receiver(NamedTuple):
    """The optical phase of one session with one engine."""

    receiving: socket.socket
    light: DatagramIntake
    assembly: BlockAssembly

    def results(self, stop: int) -> object:
        """Return the results of everything that has arrived."""
        self.light.stop = stop
        while select.select([self.receiving], [], [], 0)[0]:
            self.light.read()
        arrived, one = self.light.arrived(0.0), self.assembly
        wrong = sorted({b for first, count in one.take_wrong() for b in range(first, first + count)})
        counts = one.duplicates, one.refused, one.store.corrupt, wrong
        return list(arrived.runs), arrived.new, counts, one.missing(0, SEGMENTS), list(one.store.held.ranges())


def receiver(engine: str, source: tuple[str, int], undo: ExitStack) -> Receiver:
    """Return a receiver with wrong digests for half of the blocks."""
    store = file_store(engine, Path(undo.enter_context(tempfile.TemporaryDirectory())), LAYOUT)
    undo.callback(store.discard)
    store.expect(0, bytes(16) * (LAYOUT.blocks // 2))
    receiving = undo.enter_context(bound_socket())
    receiving.setblocking(False)
    assembly = open_assembly(store, None)
    return Receiver(receiving, open_datagrams(receiving, source, SESSION, assembly), assembly)


def test_engines_treat_any_datagram_alike() -> None:
    chance = random.Random(2026)
    for _ in range(-(-INPUTS // OF_ONE_SESSION)):
        with on_one_processor(), ExitStack() as undo:
            sending = undo.enter_context(bound_socket())
            both = [receiver(engine, sending.getsockname(), undo) for engine in (PYTHON, COMPILED)]
            for _ in range(OF_ONE_SESSION // AT_ONCE):
                sent = [changed(chance, sample(chance)) for _ in range(AT_ONCE)]
                for one in both:
                    for datagram in sent:
                        sending.sendto(datagram, one.receiving.getsockname())
                delivered(sending)
                stop = chance.choice([SEGMENTS, SEGMENTS, 1 << 40, chance.randrange(SEGMENTS)])
                python, compiled = (one.results(stop) for one in both)
                assert python == compiled, sent
