"""Multicast trees that nobody shapes, as Fast Parallel File Replication uses them: what is compared with.

    unshaped_trees.py HOST JOB.json

Every edge of every tree is a TCP connection of its own that sends as fast as it can. The root gives the next chunk to
whichever tree takes it; a host passes on what it gets to its children in that tree, and throws it away. The job is
{"root", "bytes", "addresses": {host: address}, "trees": [{host: parent}…]}. Says "listening", the root "begun", and
"done" when everything has come or gone. Standard library only.
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

_FIRST_PORT, _SOURCE_PORT, _LAST_PORT = 5400, 20000, 60000
_TURNS = 4
_CHUNK = 64 << 10
_WAITING_CHUNKS = 8
"""For a child. Who is slow holds up his tree, as he does where files do not fit into memory."""

Chunks = Iterator[bytes]


def main() -> None:
    """One host's part."""
    threading.excepthook = _end
    host, job = sys.argv[1], json.loads(Path(sys.argv[2]).read_text())
    servers = [_listening(job, host, number) if host in tree else None for number, tree in enumerate(job["trees"])]
    say("listening")
    chunks = Dealt(job["bytes"])
    threads = []
    for number, server in enumerate(servers):
        if server is not None or host == job["root"]:
            threads.append(threading.Thread(target=carry, args=(job, host, number, server, chunks)))
    if host == job["root"]:
        say("begun")
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    say("done")


class Dealt:
    """The chunks of the file, each of which one tree gets."""

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


def carry(job: dict, host: str, number: int, server: socket.socket | None, own: Dealt) -> None:
    """A tree's part of this host."""
    children = [child for child, parent in job["trees"][number].items() if parent == host]
    # Who has been reached knows that everybody listens.
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
    """A connection to a child, and what waits for it."""

    def __init__(self, number: int, near: str, far: str) -> None:
        super().__init__()
        self.waiting: queue.Queue[bytes] = queue.Queue(_WAITING_CHUNKS)
        self._socket = _connected(number, near, far)
        self.start()

    def run(self) -> None:
        """Send until there is no more."""
        with self._socket:
            while chunk := self.waiting.get():
                self._socket.sendall(chunk)


def _connected(number: int, near: str, far: str) -> socket.socket:
    """From the next free source port of this tree: sites give turns by these."""
    for port in range(_SOURCE_PORT + 2 * number, _LAST_PORT, 2 * _TURNS):
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


def _listening(job: dict, host: str, number: int) -> socket.socket:
    return socket.create_server((job["addresses"][host], _FIRST_PORT + number))


def _end(failure: threading.ExceptHookArgs) -> None:
    """A part that has failed must not be waited for."""
    sys.stderr.write(f"{failure.exc_value!r}\n")
    os._exit(1)


def say(word: str) -> None:
    """For who started us."""
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
