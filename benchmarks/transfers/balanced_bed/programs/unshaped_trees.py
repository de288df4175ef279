"""Multicast trees without shaping, as in Fast Parallel File Replication.

    unshaped_trees.py HOST JOB.json

Every edge of every tree is a TCP connection that sends as fast as it can. The root assigns the next chunk to any tree
that accepts it; a host forwards chunks to its children in that tree, and discards them. The job is {"root", "bytes",
"addresses": {host: address}, "trees": [{host: parent}…]}. The program prints "listening", at the root "begun", and
"done" at the end. It uses only the standard library.
"""

from __future__ import annotations

import errno
import json
import os
import queue
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_FIRST_PORT, _SOURCE_PORT, _LAST_PORT = 5400, 20000, 60000
_SCHEDULES = 4
_CHUNK = 64 << 10
_WAITING_CHUNKS = 8
"""Chunks queued for a child. A slow child delays its tree, as with files larger than memory."""

Chunks = Iterator[bytes]


def main() -> None:
    """Run the part of one host."""
    threading.excepthook = _end
    host, job = sys.argv[1], json.loads(Path(sys.argv[2]).read_text())
    servers = [_listening(job, host, number) if host in tree else None for number, tree in enumerate(job["trees"])]
    print_line("listening")
    chunks = Dealt(job["bytes"])
    threads = []
    for number, server in enumerate(servers):
        if server is not None or host == job["root"]:
            threads.append(threading.Thread(target=carry, args=(job, host, number, server, chunks)))
    if host == job["root"]:
        print_line("begun")
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print_line("done")


class Dealt:
    """The chunks of the file, each for one tree."""

    def __init__(self, size: int) -> None:
        self._left = size
        self._lock = threading.Lock()

    def __iter__(self) -> Chunks:
        while True:
            with self._lock:
                size = min(self._left, _CHUNK)
                self._left -= size
            if not size:
                return
            yield bytes(size)


def carry(job: dict[str, Any], host: str, number: int, server: socket.socket | None, own: Dealt) -> None:
    """Run the part of one tree at this host."""
    children = [child for child, parent in job["trees"][number].items() if parent == host]
    # The sender starts only after all hosts listen.
    chunks = iter(own) if server is None else _received(server.accept()[0])
    near = job["addresses"][host]
    links = [Link(number, near, job["addresses"][child]) for child in children]
    for chunk in chunks:
        for link in links:
            link.waiting.put(chunk)
    for link in links:
        link.waiting.put(b"")
        link.join()


class Link(threading.Thread):
    """A connection to a child, and its queue."""

    def __init__(self, number: int, near: str, far: str) -> None:
        super().__init__()
        self.waiting: queue.Queue[bytes] = queue.Queue(_WAITING_CHUNKS)
        self._socket = _connected(number, near, far)
        self.start()

    def run(self) -> None:
        """Send until the queue ends."""
        with self._socket:
            while chunk := self.waiting.get():
                self._socket.sendall(chunk)


def _connected(number: int, near: str, far: str) -> socket.socket:
    """Connect from the next free source port of this tree: sites schedule by source port."""
    for port in range(_SOURCE_PORT + 2 * number, _LAST_PORT, 2 * _SCHEDULES):
        try:
            return socket.create_connection((far, _FIRST_PORT + number), source_address=(near, port))
        except OSError as refusal:
            if refusal.errno not in {errno.EADDRINUSE, errno.EADDRNOTAVAIL}:
                raise
    raise OSError(errno.EADDRINUSE, "no source port is free")


def _received(connection: socket.socket) -> Chunks:
    with connection:
        while chunk := connection.recv(_CHUNK):
            yield chunk


def _listening(job: dict[str, Any], host: str, number: int) -> socket.socket:
    return socket.create_server((job["addresses"][host], _FIRST_PORT + number))


def _end(failure: threading.ExceptHookArgs) -> None:
    """End the process when one of its threads fails."""
    sys.stderr.write(f"{failure.exc_value!r}\n")
    os._exit(1)


def print_line(word: str) -> None:
    """Print a line and flush standard output."""
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
