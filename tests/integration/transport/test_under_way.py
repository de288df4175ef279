"""Repairs that arrive after a receiver is complete, because another source was faster."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from blast_transport.wire.codec import ControlDecoder, encode
from blast_transport.wire.messages import FILE, Digests, EndOfData, Fin, Hello, Message, Phase, Ready, Repair
from blast_transport.wire.transports import UNICAST
from tests.support.transport.transport_data import SUITE, Data, data_of
from tests.support.transport.transport_hosts import Agent, agent

SESSION = 7
DATA = data_of(200_000, 1456, 44)


def hello() -> bytes:
    return encode(Hello(SESSION, len(DATA.content), 1456, 44, SUITE.name, FILE, "file"))


def repair(data: Data, *blocks: int) -> bytes:
    return encode(Repair(SESSION, tuple((block * 44, data.block(block)) for block in blocks)))


def everything() -> bytes:
    """Return all messages of the session, to its end."""
    return b"".join(
        (
            encode(Phase(SESSION, 1, UNICAST, 0)),
            *(repair(DATA, block) for block in range(DATA.blocks)),
            encode(Digests(SESSION, 0, DATA.digests())),
            encode(EndOfData(SESSION, len(DATA.content), DATA.whole)),
        )
    )


def messages_until_close(sock: socket.socket, decoder: ControlDecoder) -> list[Message]:
    """Return all messages of the receiver until it closes."""
    messages = list[Message]()
    sock.settimeout(20)
    while data := sock.recv(1 << 16):
        messages += decoder.feed(data)
    return messages


def begin(there: Agent) -> tuple[socket.socket, ControlDecoder]:
    sock, decoder = socket.create_connection(there.address[1:]), ControlDecoder()
    sock.sendall(hello())
    (ready,) = decoder.feed(sock.recv(1 << 16))
    assert isinstance(ready, Ready)
    return sock, decoder


@pytest.mark.parametrize("cut", [1, 9, 1000])
def test_partial_repair_at_the_end_does_not_lose_fin(tmp_path: Path, cut: int) -> None:
    late = repair(DATA, 0, 1)
    with agent(tmp_path / "a") as there:
        sock, decoder = begin(there)
        with sock:
            sock.sendall(everything() + late[:cut])
            assert there.received().bytes == len(DATA.content)
            sock.sendall(late[cut:] + repair(DATA, 2))
            time.sleep(0.2)  # a reset in this time would discard unread data
            assert isinstance(messages_at_end(sock, decoder)[-1], Fin)


def messages_at_end(sock: socket.socket, decoder: ControlDecoder) -> list[Message]:
    sock.shutdown(socket.SHUT_WR)
    return messages_until_close(sock, decoder)


def test_complete_repairs_after_the_end_keep_connection_usable(tmp_path: Path) -> None:
    """Larger than any first message, too."""
    with agent(tmp_path / "a") as there:
        sock, decoder = begin(there)
        with sock:
            sock.sendall(everything())
            assert there.received().bytes == len(DATA.content)
            assert len(repair(DATA, 0, 1)) > 1 << 16
            sock.sendall(repair(DATA, 0, 1) + repair(DATA, 2) + hello() + everything())
            assert there.received().bytes == len(DATA.content)
            assert [type(one) for one in messages_at_end(sock, decoder)].count(Fin) == 2
