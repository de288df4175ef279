"""The transport by light at a sender, driven step by step on the loopback interface."""

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
from blast_transport.store.opening import open_reader
from blast_transport.store.sources.source import opened_file
from blast_transport.transports.choices import Chain, OpticalPause
from blast_transport.transports.optical.sender import OpticalSender
from blast_transport.transports.sending import Granted, SendingContext, Sent
from blast_transport.wire.messages import Phase
from blast_transport.wire.transports import OPTICAL
from tests.support.engines import BOTH
from tests.support.transport_data import SUITE
from tests.support.transport_hosts import LOOPBACK, light

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
    """How far it tells that it is, until it may send no more."""
    sender.permit(stop)
    told = list[int]()
    while (wait := sender.work(time.monotonic())) < 0.015:
        told += [event.stop for event in sender.events() if isinstance(event, Sent)]
        time.sleep(wait)  # the pacer's
    return told


def test_it_sends_what_is_permitted_and_tells_how_far_it_is(sender: OpticalSender) -> None:
    told = until_blocked(sender, 10)
    assert told == sorted(told) and told[-1] == 10
    assert sender.datagrams == 10 * SEGMENTS
    assert until_blocked(sender, 30)[-1] == 30 and not sender.over
    assert until_blocked(sender, BLOCKS + 5)[-1] == BLOCKS and sender.over


def test_what_everybody_holds_does_not_leave(sender: OpticalSender, held: BlockMap) -> None:
    held.add_range(2, 30)
    assert until_blocked(sender, BLOCKS)[-1] == BLOCKS
    assert sender.datagrams == (BLOCKS - 30) * SEGMENTS


def test_a_retransmission_goes_before_what_comes_next(sender: OpticalSender) -> None:
    until_blocked(sender, 4)
    sender.retransmit(1, 0b0101)
    until_blocked(sender, 4)
    assert sender.datagrams == 4 * SEGMENTS + 2


def test_what_was_to_leave_again_does_not_wait_for_other_light(sender: OpticalSender) -> None:
    """Whoever misses it asks again, and of a stream it may be gone by then."""
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


def test_it_follows_the_same_light_only_and_a_rate_that_is_one(sender: OpticalSender) -> None:
    assert not sender.follow(replace(LIGHT, port=LIGHT.port + 1)) and not sender.follow(Chain())
    assert sender.follow(replace(LIGHT, rate=0.0))
    assert sender.events() == [Granted(0.0)]
    with pytest.raises(WrongInputError, match="positive"):
        sender.pace(0.0)
