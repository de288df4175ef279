"""Where the nodes of a chain reach its source: strangers take neither all of its places nor its threads."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from blast_transport.links.chain_source import SourceAdmission
from blast_transport.links.reception import Reception
from blast_transport.transports.pipeline.protocol.messages import encode
from blast_transport.wire.joining import TOKEN_BYTES, Join
from blast_transport.wire.messages import Phase
from blast_transport.wire.transports import PIPELINE
from tests.support.waiting import eventually

TOKEN = b"t" * TOKEN_BYTES
PHASE = Phase(7, 1, PIPELINE, 0, token=TOKEN)


class Source:
    """Takes whoever knows the token."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def accept(self, sock: socket.socket, name: str) -> None:
        self.names.append(name)
        sock.close()


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def address(source: Source) -> Iterator[tuple[str, int]]:
    listener = socket.create_server(("127.0.0.1", 0))
    address = listener.getsockname()
    reception = Reception(listener, SourceAdmission(None, ["h2"]), PHASE, source.accept)
    yield address
    reception.close()


def test_a_crowd_of_strangers_is_few_threads(address: tuple[str, int], source: Source) -> None:
    before = threading.active_count()
    strangers = [socket.create_connection(address, 10) for _ in range(300)]
    turned_away = 0
    for stranger in strangers:
        stranger.setblocking(False)

    def all_met() -> bool:
        nonlocal turned_away
        turned_away = sum(is_closed(stranger) for stranger in strangers)
        return turned_away >= 300 - 16

    eventually(all_met, "a door that is full")
    assert threading.active_count() - before <= 16
    for stranger in strangers:
        stranger.close()

    def is_heard() -> bool:
        with socket.create_connection(address, 10) as node:
            node.sendall(encode(Join(7, 1, TOKEN, "h2")))
        return bool(source.names)

    eventually(is_heard, "a node that is let in")


def is_closed(sock: socket.socket) -> bool:
    try:
        return sock.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def test_without_a_thread_it_goes_on_listening(
    address: tuple[str, int], source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing(threading.Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading, "Thread", Refusing)
        with socket.create_connection(address, 30) as sock:
            assert sock.recv(1) == b""
    with socket.create_connection(address, 10) as node:
        node.sendall(encode(Join(7, 1, TOKEN, "h2")))
        eventually(lambda: source.names == ["h2"], "a node that is let in")
