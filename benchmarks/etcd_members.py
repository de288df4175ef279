"""A real etcd of some members on loopback, for benchmarks."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from blast_controller.store.etcd.connection import Connection
from blast_controller.store.etcd.errors import StoreAway
from blast_controller.store.etcd.methods import STATUS
from blast_controller.store.etcd.proto import etcd_pb2 as api

_STARTING = 30.0


def _ports(number: int) -> list[int]:
    with ExitStack() as stack:
        held = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(number)]
        return [int(one.getsockname()[1]) for one in held]


@contextmanager
def etcd_members(binary: str, members: int, folder: Path) -> Iterator[tuple[str, ...]]:
    """The endpoints of an etcd of so many members on loopback, without TLS, at 20/200 ms."""
    ports = _ports(2 * members)
    clients = [f"127.0.0.1:{port}" for port in ports[:members]]
    peers = [f"http://127.0.0.1:{port}" for port in ports[members:]]
    cluster = ",".join(f"m{number}={peer}" for number, peer in enumerate(peers))
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for number, (client, peer) in enumerate(zip(clients, peers, strict=True)):
            words = [binary, "--name", f"m{number}", "--data-dir", str(folder / f"m{number}")]
            words += ["--heartbeat-interval", "20", "--election-timeout", "200", "--initial-cluster", cluster]
            words += ["--listen-client-urls", f"http://{client}", "--advertise-client-urls", f"http://{client}"]
            words += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
            processes.append(subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        yield tuple(clients)
    finally:
        for process in processes:
            process.kill()
            process.wait()


def await_etcd(connection: Connection) -> str:
    """etcd's version, once it serves."""
    end = time.monotonic() + _STARTING
    while True:
        try:
            status = connection.call(STATUS, api.StatusRequest())
            if status.leader:
                return str(status.version)
        except StoreAway:
            if time.monotonic() > end:
                raise
