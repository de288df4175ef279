"""Passages end with all that is under way, also what has only just come."""

from __future__ import annotations

import gc
import socket
import struct

import pytest

from mininet_topos.kernel.passages import Passage, Passages, here, listening_here


@pytest.fixture
def far():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(10)
        yield listening


@pytest.fixture
def passage(far):
    return Passage(listening_here("127.0.0.1", 0), here(*far.getsockname()))


def joined(passage: Passage, far: socket.socket) -> tuple[socket.socket, socket.socket]:
    """Both ends of a connection through it."""
    near = socket.create_connection(passage.listening.getsockname(), timeout=10)
    there, _ = far.accept()
    there.settimeout(10)
    return near, there


def test_bytes_pass_both_ways_and_the_end_ends_them(passage, far):
    with Passages([passage]):
        near, there = joined(passage, far)
        near.sendall(b"there")
        assert there.recv(5) == b"there"
        there.sendall(b"and back")
        assert near.recv(8) == b"and back"
    assert is_over(near) and is_over(there)


def test_a_connection_that_breaks_at_one_end_breaks_at_the_other(passage, far):
    with Passages([passage]):
        near, there = joined(passage, far)
        near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        near.close()
        assert is_over(there)


def test_where_it_is_shut_nobody_is_told_that_the_other_is_gone(passage, far):
    with Passages([passage]):
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
def test_who_has_only_just_come_is_not_left_open(passage, shut):
    """What is collected while it is open is told, and fails whichever test comes next."""
    with Passages([passage]):
        if shut:
            passage.gate.shut()
        near = [socket.create_connection(passage.listening.getsockname(), timeout=10) for _ in range(20)]
    gc.collect()
    assert all(map(is_over, near))


def test_it_ends_while_it_is_shut_too(passage, far):
    with Passages([passage]):
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
