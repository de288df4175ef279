"""The optical transport of a sender, driven step by step on the loopback interface."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest

from blast_transport.base.errors import WrongInputError
from blast_transport.base.waker import Waker
from blast_transport.blocks.block_map import BlockMap
from blast_transport.blocks.layout import BlockLayout
from blast_transport.links.dialling import dial
from blast_transport.store.sources.compiled_reader import open_reader
from blast_transport.store.sources.source import opened_file
from blast_transport.transports.choices import Chain, OpticalPause
from blast_transport.transports.optical.sender import OpticalSender
from blast_transport.transports.sending import Granted, SendingContext, Sent
from blast_transport.wire.messages import Phase
from blast_transport.wire.transports import OPTICAL
from tests.support.transport.engines import BOTH
from tests.support.transport.transport_data import SUITE
from tests.support.transport.transport_hosts import LOOPBACK, light

BLOCKS, SEGMENTS, SIZE = 40, 4, 100
LIGHT = light(1e9)


@pytest.fixture
def held() -> BlockMap:
    return BlockMap()


@pytest.fixture(params=BOTH)
def sender(request: pytest.FixtureRequest, tmp_path: Path, held: BlockMap) -> Iterator[OpticalSender]:
    path = tmp_path / "file"
    path.write_bytes(bytes(BLOCKS * SEGMENTS * SIZE))
    with ExitStack() as stack:
        source = stack.enter_context(opened_file(path))
        reader = open_reader(request.param, source, BlockLayout(source.size, SIZE, SEGMENTS), SUITE, None)
        assert reader.engine == request.param
        waker = stack.enter_context(closing(Waker()))
        around = SendingContext(reader, held, (), LOOPBACK, LOOPBACK, dial, None, waker.wake, waker.fileno())
        transport = OpticalSender(Phase(7, 1, OPTICAL, 0), LIGHT, around)
        stack.callback(transport.close)
        assert transport.events() == [Granted(LIGHT.rate)]
        transport.pace(LIGHT.rate)
        yield transport


def until_blocked(sender: OpticalSender, stop: int) -> list[int]:
    """Run the sender until it may send no more, and return the positions that it reports."""
    sender.permit(stop)
    positions = list[int]()
    while (wait := sender.work(time.monotonic())) < 0.015:
        positions += [event.stop for event in sender.events() if isinstance(event, Sent)]
        time.sleep(wait)  # the pacer's
    return positions


def test_sender_sends_permitted_blocks_and_reports_position(sender: OpticalSender) -> None:
    positions = until_blocked(sender, 10)
    assert positions == sorted(positions) and positions[-1] == 10
    assert sender.datagrams == 10 * SEGMENTS
    assert until_blocked(sender, 30)[-1] == 30 and not sender.over
    assert until_blocked(sender, BLOCKS + 5)[-1] == BLOCKS and sender.over


def test_blocks_held_by_all_are_not_sent(sender: OpticalSender, held: BlockMap) -> None:
    held.add_range(2, 30)
    assert until_blocked(sender, BLOCKS)[-1] == BLOCKS
    assert sender.datagrams == (BLOCKS - 30) * SEGMENTS


def test_retransmission_precedes_next_blocks(sender: OpticalSender) -> None:
    until_blocked(sender, 4)
    sender.retransmit(1, 0b0101)
    until_blocked(sender, 4)
    assert sender.datagrams == 4 * SEGMENTS + 2


def test_pause_drops_pending_retransmissions(sender: OpticalSender) -> None:
    """Receivers request the segments again, and a stream may no longer have them."""
    until_blocked(sender, 4)
    sender.retransmit(1, 0b1111)
    assert sender.follow(OpticalPause())
    assert sender.room(time.monotonic()) == 0
    assert sender.follow(LIGHT)
    until_blocked(sender, 4)
    assert sender.datagrams == 4 * SEGMENTS
    sender.retransmit(1, 0b1111)
    assert sender.follow(replace(LIGHT, until=time.monotonic()))
    sender.work(time.monotonic())
    assert sender.follow(LIGHT)
    until_blocked(sender, 4)
    assert sender.datagrams == 4 * SEGMENTS


def test_sender_follows_only_same_group_and_positive_rate(sender: OpticalSender) -> None:
    assert not sender.follow(replace(LIGHT, port=LIGHT.port + 1)) and not sender.follow(Chain())
    assert sender.follow(replace(LIGHT, rate=0.0))
    assert sender.events() == [Granted(0.0)]
    with pytest.raises(WrongInputError, match="positive"):
        sender.pace(0.0)
