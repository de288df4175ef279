"""The incoming connection of a node: data of an iteration is settled before other events are reported."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator

import pytest

from blast_transport.transports.pipeline.connections.feed import Feed
from blast_transport.transports.pipeline.connections.link import Link
from blast_transport.transports.pipeline.protocol.messages import Data, End, encode


class Intake:
    """Intake that counts received bytes, at most 4 at a time."""

    ready = drained = True
    frames = None

    def __init__(self, events: list[str]) -> None:
        self.position = 0
        self.servable = 0
        self._events = events

    def take(self, sock: socket.socket, limit: int) -> int:
        count = len(sock.recv(min(limit, 4)))
        self.position += count
        return count

    def settle(self) -> None:
        self.servable = self.position
        self._events.append("settled")

    def complete(self, stop: int, final: bool) -> None:
        raise AssertionError

    def close(self) -> None:
        raise AssertionError


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def feed_of(sock: socket.socket, events: list[str]) -> Feed:
    feed = Feed(
        Intake(events),
        lambda: True,
        lambda: events.append("arrived"),
        lambda message: events.append(type(message).__name__),
        lambda reason: events.append("lost"),
    )
    feed.link = Link(sock)
    return feed


def test_data_of_iteration_is_reported_once(pair: tuple[socket.socket, socket.socket]) -> None:
    events: list[str] = []
    feed = feed_of(pair[0], events)
    pair[1].sendall(encode(Data(20)) + bytes(10))
    feed.work(select.POLLIN)
    assert events == ["settled", "arrived"]
    feed.work(0)
    assert events == ["settled", "arrived"]
    pair[1].sendall(bytes(10))
    feed.work(select.POLLIN)
    assert events == ["settled", "arrived"] * 2


def test_data_is_reported_before_following_message(pair: tuple[socket.socket, socket.socket]) -> None:
    events: list[str] = []
    pair[1].sendall(encode(Data(10)) + bytes(10) + encode(End(10, final=True)))
    feed_of(pair[0], events).work(select.POLLIN)
    assert events == ["settled", "arrived", "End"]


@pytest.mark.parametrize("behind", [b"", b"\xff" * 8])
def test_data_is_reported_before_loss_of_connection(pair: tuple[socket.socket, socket.socket], behind: bytes) -> None:
    """The next predecessor must continue behind all received data."""
    events: list[str] = []
    pair[1].sendall(encode(Data(10)) + bytes(10) + behind)
    pair[1].close()
    feed_of(pair[0], events).work(select.POLLIN)
    assert events == ["settled", "arrived", "lost"]
