"""Digests of a chain's source: the reader gets the digests of all blocks, and reads only omitted blocks."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blast_transport.base.engines import COMPILED, PYTHON
from blast_transport.blocks.digests import DIGEST_BYTES
from blast_transport.store.sources.block_reader import BlockReader
from blast_transport.store.sources.compiled_reader import open_reader
from blast_transport.store.sources.source import FileSource
from blast_transport.transports.pipeline.connections.link import Link
from blast_transport.transports.pipeline.connections.outlets import FileOutlet, open_digesting_outlet
from blast_transport.transports.pipeline.digest_queue import DigestQueue
from tests.support.transport.transport_data import SUITE, Data, data_of

BLOCKS = 100


class Wakes(list[int]):
    """Number of digests that were waiting at each notification."""

    def __init__(self) -> None:
        self.added = 0

    def __call__(self) -> None:
        self.append(self.added)


@contextmanager
def reader_of(data: Data) -> Iterator[BlockReader]:
    with tempfile.NamedTemporaryFile() as file:
        file.write(data.content)
        file.flush()
        yield open_reader(PYTHON, FileSource(Path(file.name), file.fileno()), data.layout, SUITE, None)


@settings(max_examples=100, deadline=None)
@given(sent=st.sets(st.integers(0, BLOCKS - 1)), portion=st.integers(1, 9), behind=st.integers(0, 20))
def test_reader_gets_digests_in_order_with_those_of_omitted_blocks(sent: set[int], portion: int, behind: int) -> None:
    """`behind`: the number of sent blocks after which the session's thread runs again."""
    data = data_of(BLOCKS * 40 - 7)
    digests, read = DigestQueue(BLOCKS, lambda: None), 0
    with reader_of(data) as reader:
        for block in range(BLOCKS):
            if block in sent:
                digests.add(block, data.digests(block, block + 1))
            if block % (behind + 1) and block < BLOCKS - 1:
                continue
            while blocks := min(portion, digests.pass_to(reader, block + 1)):
                before = reader.digested
                assert reader.digest(blocks)
                read += reader.digested - before
        assert reader.take_digests() == data.digests()
    assert read == BLOCKS - len(sent)


def test_session_is_woken_for_many_digests_and_for_the_last() -> None:
    wakes = Wakes()
    digests = DigestQueue(BLOCKS, wakes)
    for block in range(BLOCKS):
        wakes.added += 1
        digests.add(block, bytes(DIGEST_BYTES))
    assert wakes == [32, 64, 96, BLOCKS]


def test_small_file_wakes_session_once() -> None:
    wakes = Wakes()
    DigestQueue(1, wakes).add(0, bytes(DIGEST_BYTES))
    assert len(wakes) == 1


@pytest.mark.parametrize("engine", [PYTHON, pytest.param(COMPILED, marks=pytest.mark.compiled)])
def test_python_engine_sends_without_digests(engine: str) -> None:
    """So do links over TLS, which call `give`: the session digests what they send."""
    data = data_of(1000)
    found = list[int]()
    ours, theirs = socket.socketpair()
    with reader_of(data) as reader, ours, theirs:
        descriptor = reader.source.descriptor
        assert descriptor is not None
        outlet = open_digesting_outlet(engine, descriptor, 1000, 40, lambda first, _: found.append(first))
        assert outlet.give(ours, 0, 1000) == 1000
        assert (theirs.recv(1000), found) == (data.content, [])
        if engine == PYTHON:
            assert type(outlet) is FileOutlet
        else:
            assert Link(ours).give(outlet, 0, 1000) == 1000
            assert found == [0]
