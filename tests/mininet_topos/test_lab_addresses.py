"""Addresses that a lab reserves for its servers."""

from __future__ import annotations

import errno
import socket
from contextlib import closing

import pytest

from mininet_topos.kernel.addresses import LOOPBACK, ReservedAddresses


def port_of(address: str) -> int:
    host, _, port = address.rpartition(":")
    assert host == LOOPBACK
    return int(port)


def test_only_servers_of_lab_can_bind_reserved_addresses() -> None:
    with closing(ReservedAddresses()) as addresses:
        ports = [port_of(addresses.take()) for _ in range(50)]
        assert len(set(ports)) == 50, "each port is different"
        for _ in range(2):
            with (
                socket.create_server((LOOPBACK, ports[0])) as server,
                socket.create_connection((LOOPBACK, ports[0]), 10) as client,
            ):
                server.accept()[0].close()
                assert client.recv(1) == b""
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((LOOPBACK, ports[0]), 10)
        with socket.socket() as foreign, pytest.raises(OSError) as refusal:
            foreign.bind((LOOPBACK, ports[0]))
        assert refusal.value.errno == errno.EADDRINUSE


def test_closed_reservations_free_their_ports() -> None:
    addresses = ReservedAddresses()
    port = port_of(addresses.take())
    for _ in range(2):
        addresses.close()
    with socket.socket() as foreign:
        foreign.bind((LOOPBACK, port))
