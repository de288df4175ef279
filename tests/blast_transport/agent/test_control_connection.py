"""Control connections: errors of peers of other protocols, and the count of received segments."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from blast_transport.base.errors import RemoteError
from blast_transport.credentials.authentication import refusal
from blast_transport.links.control_connection import ControlConnection
from tests.support.waiting import eventually


def test_connection_without_secret_reports_agent_that_requires_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection = ControlConnection(socket.create_connection(server.getsockname()))
        with server.accept()[0] as other:
            other.sendall(refusal("no proof"))
            connection.socket.settimeout(30)
            with pytest.raises(RemoteError, match="give its secret"):
                connection.receive()
        connection.close()


def test_segments_are_counted_before_they_are_read() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection = ControlConnection(socket.create_connection(server.getsockname()))
        with server.accept()[0] as other:
            assert connection.segments == 0
            other.sendall(b"1")
            eventually(lambda: connection.segments == 1)
            other.sendall(b"2")
            eventually(lambda: connection.segments == 2)
        connection.close()


class ShortTcpInfoSocket(socket.socket):
    """Socket of a Linux emulator, which returns only the first number of `tcp_info`."""

    def getsockopt(self, *option: int) -> Any:
        value: Any = super().getsockopt(*option)
        return value[:4] if option[:2] == (socket.IPPROTO_TCP, socket.TCP_INFO) else value


def test_segment_count_is_zero_without_full_tcp_info() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        dialled = socket.create_connection(server.getsockname())
        connection = ControlConnection(ShortTcpInfoSocket(fileno=dialled.detach()))
        with server.accept()[0] as other:
            other.sendall(b"1")
            assert connection.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256) != b""
            assert connection.segments == 0
        connection.close()
