"""A control connection to somebody who does not speak our protocol says what to do."""

from __future__ import annotations

import socket

import pytest

from blast_transport.base.errors import RemoteError
from blast_transport.credentials.authentication import refusal
from blast_transport.links.control_connection import ControlConnection


def test_an_agent_that_wants_a_proof_is_told_apart_from_one_that_speaks_nonsense() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection = ControlConnection(socket.create_connection(server.getsockname()))
        with server.accept()[0] as other:
            other.sendall(refusal("no proof"))
            connection.socket.settimeout(30)
            with pytest.raises(RemoteError, match="give the secret"):
                connection.receive()
        connection.close()
