"""A real Redis server in a folder of its own, and a client that plays the switch's own processes."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.waiting import eventually

PROGRAM = shutil.which("redis-server")
CONFIG_DB, STATE_DB = 4, 6


class RedisServer:
    """A server at a Unix socket. Raises AssertionError if it does not start."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.socket = folder / "redis.sock"
        assert PROGRAM is not None
        self._options = [PROGRAM, "--port", "0", "--unixsocket", str(self.socket), "--save", "", "--dir", str(folder)]
        self._options += options
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._options, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        eventually(self._answers, "the Redis server to answer")

    def stop(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def do(self, *words: str, database: int = STATE_DB) -> str:
        """Carry out a command and return the raw reply; as user `default`."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.socket))
            for command in (("SELECT", str(database)), words):
                connection.sendall(_encoded(command))
                reply = connection.recv(1 << 16)
        return reply.decode()

    def set_row(self, key: str, *, database: int = STATE_DB, **columns: str) -> None:
        pairs = [text for pair in columns.items() for text in pair]
        assert self.do("HSET", key, *pairs, database=database).startswith(":")

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, "the Redis server has ended"
        try:
            return "PONG" in self.do("PING")
        except OSError:
            return False


@contextmanager
def redis_server(folder: Path, *options: str) -> Iterator[RedisServer]:
    server = RedisServer(folder, *options)
    try:
        yield server
    finally:
        server.stop()


def _encoded(words: tuple[str, ...]) -> bytes:
    texts = [word.encode() for word in words]
    return b"*%d\r\n" % len(texts) + b"".join(b"$%d\r\n%s\r\n" % (len(text), text) for text in texts)
