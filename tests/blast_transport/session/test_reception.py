"""Reception of nodes at the source: unauthenticated peers exhaust neither places nor threads."""

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
    """Source that accepts each node with the token."""

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


def test_many_unauthenticated_connections_use_few_threads(address: tuple[str, int], source: Source) -> None:
    before = threading.active_count()
    crowd = [socket.create_connection(address, 10) for _ in range(300)]
    rejected = 0
    for sock in crowd:
        sock.setblocking(False)

    def all_rejected() -> bool:
        nonlocal rejected
        rejected = sum(is_closed(sock) for sock in crowd)
        return rejected >= 300 - 16

    eventually(all_rejected, "the rejection of connections beyond the limit")
    assert threading.active_count() - before <= 16
    for sock in crowd:
        sock.close()

    def is_accepted() -> bool:
        with socket.create_connection(address, 10) as node:
            node.sendall(encode(Join(7, 1, TOKEN, "h2")))
        return bool(source.names)

    eventually(is_accepted, "an accepted node")


def is_closed(sock: socket.socket) -> bool:
    try:
        return sock.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def test_reception_keeps_listening_after_thread_failure(
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
        eventually(lambda: source.names == ["h2"], "an accepted node")
