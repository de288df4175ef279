"""Relays close all connections at their end, also new ones."""

from __future__ import annotations

import gc
import socket
import struct

import pytest

from mininet_topos.kernel.gated_relays import GatedRelay, GatedRelays, here, listening_here


@pytest.fixture
def far():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(10)
        yield listening


@pytest.fixture
def passage(far):
    return GatedRelay(listening_here("127.0.0.1", 0), here(*far.getsockname()))


def joined(passage: GatedRelay, far: socket.socket) -> tuple[socket.socket, socket.socket]:
    """Both ends of a connection through it."""
    near = socket.create_connection(passage.listening.getsockname(), timeout=10)
    there, _ = far.accept()
    there.settimeout(10)
    return near, there


def test_relay_forwards_in_both_directions_until_closed(passage, far):
    with GatedRelays([passage]):
        near, there = joined(passage, far)
        near.sendall(b"there")
        assert there.recv(5) == b"there"
        there.sendall(b"and back")
        assert near.recv(8) == b"and back"
    assert is_over(near) and is_over(there)


def test_relay_forwards_connection_reset(passage, far):
    with GatedRelays([passage]):
        near, there = joined(passage, far)
        near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        near.close()
        assert is_over(there)


def test_shut_gate_delays_end_of_connection(passage, far):
    with GatedRelays([passage]):
        near, there = joined(passage, far)
        there.settimeout(0.2)
        passage.gate.shut()
        near.close()
        with pytest.raises(TimeoutError):
            there.recv(1)
        passage.gate.open()
        there.settimeout(10)
        assert is_over(there)


@pytest.mark.parametrize("shut", [False, True])
def test_closing_relay_closes_new_connections(passage, shut):
    # The garbage collector would warn of an open socket, and fail a later test.
    with GatedRelays([passage]):
        if shut:
            passage.gate.shut()
        near = [socket.create_connection(passage.listening.getsockname(), timeout=10) for _ in range(20)]
    gc.collect()
    assert all(map(is_over, near))


def test_closing_relay_with_shut_gate_closes_connections(passage, far):
    with GatedRelays([passage]):
        near, there = joined(passage, far)
        near.sendall(b"x")
        assert there.recv(1) == b"x"
        passage.gate.shut()
    assert is_over(near) and is_over(there)


def is_over(connection: socket.socket) -> bool:
    with connection:
        try:
            return connection.recv(1) == b""
        except ConnectionError:
            return True
