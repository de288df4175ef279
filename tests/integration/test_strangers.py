"""Clients that have not said who they are, in crowds, at a real controller: what they cost, and whom they keep out."""

from __future__ import annotations

import contextlib
import json
import resource
import selectors
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from textwrap import dedent

import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport.TTransport import TMemoryBuffer

from blast_api import BlastOperator
from blast_controller.rpc.clients.identity import Identity, Role
from blast_controller.rpc.clients.tokens import new_token, token_line
from tests.support.waiting import eventually

BLAST = str(Path(sys.executable).with_name("blast"))
PATIENCE = 60.0
MIB = 1 << 20
FABRIC = dedent("""
    [controller]
    thrift = "127.0.0.1:0"
    openflow = "127.0.0.1:0"
    [journal]
    file = "{journal}"
    [access]
    token_file = "{tokens}"
    [[rack]]
    name = "r1"
    datapath = "0000000000000001"
    hosts = [{{ name = "h1", port = 1, ip = "10.0.0.1" }}, {{ name = "h2", port = 2, ip = "10.0.0.2" }}]
    """)


class Controller:
    """A controller's process that takes tokens, over plain TCP on this machine."""

    def __init__(self, folder: Path) -> None:
        self.token = new_token()
        tokens = folder / "tokens"
        tokens.write_text(token_line(self.token, Identity("default", Role.OPERATOR)) + "\n")
        tokens.chmod(0o600)
        config = folder / "blast.toml"
        config.write_text(FABRIC.format(tokens=tokens, journal=folder / "journal.sqlite"))
        self.log = folder / "log"
        with self.log.open("w") as log:
            command = [BLAST, "controller", "run", "--config", str(config)]
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        assert said, self.log.read_text()
        self.port = int(json.loads(said)["thrift"].rpartition(":")[2])

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE)

    def resident(self) -> int:
        """Bytes of memory that the process has."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) * 1024

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def many_files() -> Iterator[None]:
    """Let this process open thousands of sockets for a while."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[Controller]:
    controller = Controller(tmp_path)
    try:
        yield controller
    finally:
        controller.close()


def frame(method: str, *arguments: object) -> bytes:
    buffer = TMemoryBuffer()
    getattr(BlastOperator.Client(TBinaryProtocolAccelerated(buffer)), f"send_{method}")(*arguments)
    body = buffer.getvalue()
    return struct.pack("!i", len(body)) + body


def answer_of(connection: socket.socket) -> bytes:
    """The body of the next reply; nothing where the connection is closed."""
    with connection.makefile("rb") as stream:
        length = stream.read(4)
        return stream.read(struct.unpack("!i", length)[0]) if len(length) == 4 else b""


def push(strangers: list[socket.socket], each: int, data: bytes) -> None:
    """Send `data` again and again on every connection until it took `each` bytes, is closed, or takes no more."""
    left = {}
    with selectors.DefaultSelector() as selector:
        for stranger in strangers:
            stranger.setblocking(False)
            left[stranger] = each
            selector.register(stranger, selectors.EVENT_WRITE)
        while left and (ready := selector.select(2.0)):
            for key, _ in ready:
                stranger = key.fileobj
                assert isinstance(stranger, socket.socket)
                try:
                    left[stranger] -= stranger.send(data)
                except BlockingIOError:
                    continue
                except OSError:
                    left[stranger] = 0
                if left[stranger] <= 0:
                    selector.unregister(stranger)
                    del left[stranger]


def test_sixteen_strangers_cost_little_memory(controller: Controller) -> None:
    before = controller.resident()
    # Calls as large as the interface allows, as fast as they are taken.
    call = frame("login", "x" * (MIB - 100))
    with ExitStack() as stack:
        strangers = [stack.enter_context(controller.connect()) for _ in range(16)]
        push(strangers, 34 * MIB, call)
        grown = controller.resident() - before
    assert grown < 48 * MIB, f"{grown / MIB:.0f} MiB"


def test_a_stranger_s_frame_is_small_and_a_known_client_s_may_be_large(controller: Controller) -> None:
    large = struct.pack("!i", 20_000) + frame("login", "x")[4:].ljust(20_000, b"\0")
    with controller.connect() as stranger:
        stranger.sendall(large)
        assert b"exceeds the cap of 16384 bytes" in answer_of(stranger)
        assert answer_of(stranger) == b""
    with controller.connect() as known:
        # Also where both are on their way before the login has been looked at.
        known.sendall(frame("login", controller.token) + frame("quarantine", "port:r1/9", "x" * 20_000))
        with known.makefile("rb") as stream:
            (length,) = struct.unpack("!i", stream.read(4))
            assert b"login" in stream.read(length)
            (length,) = struct.unpack("!i", stream.read(4))
            assert b"unknown_element" in stream.read(length)


@pytest.mark.usefixtures("many_files")
def test_four_thousand_strangers_keep_no_operator_out(controller: Controller) -> None:
    """More than there may be clients in all, from the address from which the operator comes, and still coming."""
    stop = threading.Event()
    crowd: list[socket.socket] = []

    def come_and_stay() -> None:
        while not stop.is_set():
            if len(crowd) > 8000:
                crowd.pop(0).close()
            with contextlib.suppress(OSError):
                crowd.append(socket.create_connection(("127.0.0.1", controller.port), PATIENCE))

    thread = threading.Thread(target=come_and_stay)
    thread.start()
    try:
        eventually(lambda: len(crowd) >= 4200, "that the crowd is there", PATIENCE)
        for _ in range(5):
            with controller.connect() as operator:
                operator.sendall(frame("login", controller.token) + frame("drain", None))
                with operator.makefile("rb") as stream:
                    for word in (b"login", b"drain"):
                        length = stream.read(4)
                        assert length, "the operator is crowded out"
                        assert word in stream.read(struct.unpack("!i", length)[0])
    finally:
        stop.set()
        thread.join()
        for one in crowd:
            one.close()


def test_a_known_client_stays_whoever_comes(controller: Controller) -> None:
    with controller.connect() as known, ExitStack() as stack:
        known.sendall(frame("login", controller.token))
        assert b"login" in answer_of(known)
        strangers = [stack.enter_context(controller.connect()) for _ in range(300)]
        assert strangers[0].recv(1) == b"", "the longest there goes"
        known.sendall(frame("drain", None))
        assert b"drain" in answer_of(known)
