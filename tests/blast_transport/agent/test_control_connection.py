"""A control connection to somebody who does not speak our protocol says what to do."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from blast_transport.base.errors import RemoteError
from blast_transport.credentials.authentication import refusal
from blast_transport.links.control_connection import ControlConnection
from tests.support.waiting import eventually


def test_an_agent_that_wants_a_proof_is_told_apart_from_one_that_speaks_nonsense() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection = ControlConnection(socket.create_connection(server.getsockname()))
        with server.accept()[0] as other:
            other.sendall(refusal("no proof"))
            connection.socket.settimeout(30)
            with pytest.raises(RemoteError, match="give its secret"):
                connection.receive()
        connection.close()


def test_what_has_come_is_counted_before_it_is_read() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection = ControlConnection(socket.create_connection(server.getsockname()))
        with server.accept()[0] as other:
            assert connection.segments == 0
            other.sendall(b"1")
            eventually(lambda: connection.segments == 1)
            other.sendall(b"2")
            eventually(lambda: connection.segments == 2)
        connection.close()


class ToldLittle(socket.socket):
    """As under an emulator of Linux, which hands over the first number of `tcp_info` alone."""

    def getsockopt(self, *option: int) -> Any:
        told: Any = super().getsockopt(*option)
        return told[:4] if option[:2] == (socket.IPPROTO_TCP, socket.TCP_INFO) else told


def test_who_is_not_told_what_has_come_counts_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        dialled = socket.create_connection(server.getsockname())
        connection = ControlConnection(ToldLittle(fileno=dialled.detach()))
        with server.accept()[0] as other:
            other.sendall(b"1")
            assert connection.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256) != b""
            assert connection.segments == 0
        connection.close()
