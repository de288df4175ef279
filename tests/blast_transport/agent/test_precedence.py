"""Packets that open a connection are expedited, later ones are not; the listener's kernel saves the SYN."""

from __future__ import annotations

import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from blast_transport.base.precedence import BEST_EFFORT, EXPEDITED, open_connection
from blast_transport.credentials.admission import Admission, dialer
from blast_transport.credentials.material import SharedSecret
from blast_transport.links.dialling import Dialer, dial

SECRET = SharedSecret(b"s" * 32)
_TCP_SAVE_SYN, _TCP_SAVED_SYN = 27, 28
"""Linux's numbers (tcp(7)); Python has no names for them."""


def listening(family: int = socket.AF_INET, host: str = "127.0.0.1") -> socket.socket:
    listener = socket.create_server((host, 0), family=family)
    listener.setsockopt(socket.IPPROTO_TCP, _TCP_SAVE_SYN, 1)
    return listener


def syn_of(accepted: socket.socket) -> bytes:
    return accepted.getsockopt(socket.IPPROTO_TCP, _TCP_SAVED_SYN, 256)


@pytest.mark.parametrize(
    ("connect", "admission"), [(dial, Admission(None)), (dialer(SECRET), Admission(SECRET))], ids=["plain", "secret"]
)
def test_only_opening_packets_are_expedited(connect: Dialer, admission: Admission) -> None:
    with listening() as listener, ThreadPoolExecutor() as pool:
        dialled = pool.submit(connect, ("h", *listener.getsockname()), 5.0)
        accepted, _ = listener.accept()
        assert syn_of(accepted)[1] == EXPEDITED
        with admission.admit(accepted, "x").sock, dialled.result(30) as sock:
            assert sock.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) == BEST_EFFORT


@pytest.mark.skipif(not socket.has_ipv6, reason="needs IPv6")
def test_opening_packets_are_expedited_over_ipv6() -> None:
    try:
        listener = listening(socket.AF_INET6, "::1")
    except OSError:
        pytest.skip("this host has no ::1")
    with listener, open_connection("::1", listener.getsockname()[1], 5.0):
        accepted, _ = listener.accept()
        with accepted:
            # The traffic class lies across the first two bytes (RFC 8200, section 3).
            assert int.from_bytes(syn_of(accepted)[:2], "big") >> 4 & 0xFF == EXPEDITED


def refused() -> tuple[str, int]:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        return closed.getsockname()  # type: ignore[no-any-return]


@pytest.mark.parametrize(("where", "error"), [(refused, ConnectionRefusedError), (lambda: ("h.invalid", 1), OSError)])
def test_unreachable_host_raises_error(where: Callable[[], tuple[str, int]], error: type[OSError]) -> None:
    with pytest.raises(error):
        open_connection(*where(), 5.0)
