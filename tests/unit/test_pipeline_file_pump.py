"""Data from a socket into a file: what can be sent on, and what the store holds, after every turn."""

from __future__ import annotations

import random
import socket
from pathlib import Path

import pytest

from blast_transport.base.errors import RemoteProtocolError
from blast_transport.blocks.layout import Layout
from blast_transport.carriers.pipeline.connections.file_pump import FileIntake
from tests.support.pipeline_chain import SEGMENT, content_of, file_store, finish

BLOCK = Layout(None, SEGMENT).block_size


@pytest.mark.parametrize("size", [1, BLOCK, 8 * BLOCK, 30 * BLOCK + 17])
@pytest.mark.parametrize("seed", range(4))
def test_after_a_turn_all_blocks_that_came_are_in_the_file(tmp_path: Path, size: int, seed: int) -> None:
    content, draw = content_of(size), random.Random(seed)
    store = file_store(tmp_path / "out", "f", size)
    assert store.descriptor is not None
    intake = FileIntake(store, 0)
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs, Path(f"/proc/self/fd/{store.descriptor}").open("rb") as file:
        while intake.position < size:
            for _ in range(draw.randint(1, 6)):
                piece = content[intake.position : intake.position + draw.randint(1, 2 * BLOCK)]
                theirs.sendall(piece)
                taken = 0
                while taken < len(piece):
                    taken += intake.take(ours, len(piece) - taken)
                assert intake.servable <= intake.position
            intake.settle()
            assert intake.servable == (size if intake.position == size else intake.position - intake.position % BLOCK)
            assert store.position == -(-intake.servable // BLOCK)
            file.seek(0)
            assert file.read() == content[: intake.servable]
    intake.complete(True)
    assert finish(store, content)
    assert (tmp_path / "out" / "f").read_bytes() == content


def test_nothing_comes_after_the_end(tmp_path: Path) -> None:
    store = file_store(tmp_path / "out", "f", 10)
    intake = FileIntake(store, 0)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(bytes(11))
        assert intake.take(ours, 11) == 10
        with pytest.raises(RemoteProtocolError, match="data after byte 10"):
            intake.take(ours, 1)
    store.discard()
