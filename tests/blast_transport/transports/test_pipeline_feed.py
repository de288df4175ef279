"""A connection that data comes from: what a turn brought is settled before anything else is told."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator

import pytest

from blast_transport.transports.pipeline.connections.feed import Feed
from blast_transport.transports.pipeline.connections.link import Link
from blast_transport.transports.pipeline.protocol.messages import Data, End, encode


class Intake:
    """Counts what it takes, 4 bytes at a time."""

    ready = drained = True
    frames = None

    def __init__(self, told: list[str]) -> None:
        self.position = 0
        self.servable = 0
        self._told = told

    def take(self, sock: socket.socket, limit: int) -> int:
        count = len(sock.recv(min(limit, 4)))
        self.position += count
        return count

    def settle(self) -> None:
        self.servable = self.position
        self._told.append("settled")

    def complete(self, stop: int, final: bool) -> None:
        raise AssertionError

    def close(self) -> None:
        raise AssertionError


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def feed_of(sock: socket.socket, told: list[str]) -> Feed:
    feed = Feed(
        Intake(told),
        lambda: True,
        lambda: told.append("arrived"),
        lambda message: told.append(type(message).__name__),
        lambda reason: told.append("lost"),
    )
    feed.link = Link(sock)
    return feed


def test_all_that_a_turn_brings_is_told_once(pair: tuple[socket.socket, socket.socket]) -> None:
    told: list[str] = []
    feed = feed_of(pair[0], told)
    pair[1].sendall(encode(Data(20)) + bytes(10))
    feed.work(select.POLLIN)
    assert told == ["settled", "arrived"]
    feed.work(0)
    assert told == ["settled", "arrived"]
    pair[1].sendall(bytes(10))
    feed.work(select.POLLIN)
    assert told == ["settled", "arrived"] * 2


def test_data_is_told_before_the_message_behind_it(pair: tuple[socket.socket, socket.socket]) -> None:
    told: list[str] = []
    pair[1].sendall(encode(Data(10)) + bytes(10) + encode(End(10, final=True)))
    feed_of(pair[0], told).work(select.POLLIN)
    assert told == ["settled", "arrived", "End"]


@pytest.mark.parametrize("behind", [b"", b"\xff" * 8])
def test_data_is_told_before_the_connection_is_lost(pair: tuple[socket.socket, socket.socket], behind: bytes) -> None:
    """Whoever takes the predecessor's place is told where to begin: behind all that came."""
    told: list[str] = []
    pair[1].sendall(encode(Data(10)) + bytes(10) + behind)
    pair[1].close()
    feed_of(pair[0], told).work(select.POLLIN)
    assert told == ["settled", "arrived", "lost"]
