"""A carrier from outside the package whose bytes never enter Python's session: other processes read, send and write.

The session of either end talks numbers with a process of its own: how far it may go, how far it is, and what the
digests are. `python -m tests.support.toy_outside` is that process. A star: the sender's process serves every receiver.
"""

from __future__ import annotations

import hmac
import json
import os
import queue
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any, ClassVar

from blast_transport.base.errors import RemoteProtocolError, StoreError, TransportError, WrongInputError
from blast_transport.base.threads import start_thread
from blast_transport.blocks.digests import suite_named
from blast_transport.carriers.choices import CarrierChoice
from blast_transport.carriers.receiving import CarrierEvent, ReceivingCarrier, ReceivingContext, Stored, StoreLost
from blast_transport.carriers.sending import Digested, PeerLost, SendingCarrier, SendingContext, SendingEvent, Sent
from blast_transport.wire.carriers import Traits
from blast_transport.wire.joining import Join
from blast_transport.wire.messages import Leg
from tests.support.toy_relay import END, HEAD, PATIENCE_SECONDS, drained, first_word, read_bytes, read_head

NAME = "outside"
TRAITS = Traits(repairs_itself=True)
BATCH = 16
"""Blocks for which a session and its process speak once."""


@dataclass(frozen=True, slots=True)
class Outside(CarrierChoice):
    """By other processes."""

    carrier: ClassVar[str] = NAME


class Helper:
    """The process: lines out, lines in. `sockets` and `descriptor` are given to it."""

    def __init__(self, word: dict[str, Any], descriptors: Iterable[int]) -> None:
        command = [sys.executable, "-m", "tests.support.toy_outside", json.dumps(word)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, pass_fds=tuple(descriptors)
        )

    def say(self, word: dict[str, Any]) -> None:
        """Without effect when it has ended."""
        assert self._process.stdin is not None
        with suppress(OSError, ValueError):
            self._process.stdin.write(json.dumps(word) + "\n")
            self._process.stdin.flush()

    def heard(self) -> Iterator[dict[str, Any]]:
        """Until it ends."""
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                yield json.loads(line)

    def end(self) -> None:
        """Now."""
        assert self._process.stdin is not None
        self._process.kill()
        self._process.wait()
        with suppress(OSError):
            self._process.stdin.close()


class OutsideSender(SendingCarrier):
    """Its process reads, digests and sends; here is only told what may go and what has gone."""

    def __init__(self, leg: Leg, choice: Outside, around: SendingContext) -> None:
        super().__init__(leg)
        if around.reader.source.descriptor is None:
            raise WrongInputError("what is no file cannot be read by another process")
        # By the time that its thread begins, the number may be another file's.
        self._file = os.dup(around.reader.source.descriptor)
        self._around, self._reader = around, around.reader
        self._names = {member.address[0]: member.address for member in around.members}
        self._happened: queue.SimpleQueue[SendingEvent | None] = queue.SimpleQueue()
        self._permitted = self._digested = leg.first
        self._ended = threading.Event()
        self._helper: Helper | None = None
        self._begun = False

    def leg(self, name: str) -> Leg | None:
        """Everybody hears the same; who is not served hears nothing."""
        return self._leg if name in self._names else None

    def follow(self, choice: CarrierChoice) -> bool:
        """There is only one such way."""
        return isinstance(choice, Outside)

    def work(self, now: float) -> float:
        """Let the process go on as far as there is anything."""
        if not self._begun:
            # What another carrier has left out is digested here, all else there.
            while self._reader.digested < self._leg.first:
                self._reader.digest(self._leg.first - self._reader.digested)
            self._begun = True
            start_thread("outside", self._run)
        stop = self._permitted
        while stop < self._permitted + BATCH and not self._reader.last(stop) and self._reader.ready(stop):
            stop += 1
        if self._helper is not None and stop > self._permitted:
            self._permitted = stop
            self._helper.say({"stop": stop, "last": self._reader.last(stop)})
        elif self._helper is not None and self._reader.last(stop):
            self._helper.say({"stop": stop, "last": True})
        return 0.01

    def events(self) -> Iterator[SendingEvent]:
        """What the process has told."""
        while not self._happened.empty():
            event = self._happened.get()
            if event is None:
                self.over = True
            else:
                yield event

    def leave(self) -> int | None:
        """What is missing is asked for in the end."""
        self.close()
        return None

    def close(self) -> None:
        """End the process."""
        self._ended.set()
        if self._helper is not None:
            self._helper.end()

    def _run(self) -> None:
        try:
            self._serve()
        finally:
            os.close(self._file)
            self._tell(None)

    def _serve(self) -> None:
        around, sockets = self._around, dict[str, socket.socket]()
        for name, address in self._names.items():
            try:
                sockets[name] = around.dial(address, PATIENCE_SECONDS)
                sockets[name].sendall(first_word(self._leg, "outside"))
            except (OSError, TransportError):
                self._tell(PeerLost(name, "cannot be reached"))
        layout, source = self._reader.layout, self._reader.source
        word = {
            "role": "send",
            "suite": self._reader.suite.name,
            "file": self._file,
            "size": source.size,
            "block_size": layout.block_size,
            "first": self._leg.first,
            "digested": self._reader.digested,
            "sockets": {name: sock.fileno() for name, sock in sockets.items()},
        }
        helper = Helper(word, [self._file, *(sock.fileno() for sock in sockets.values())])
        for sock in sockets.values():
            sock.close()
        self._helper = helper
        if self._ended.is_set():
            helper.end()
        for line in helper.heard():
            if "lost" in line:
                self._tell(PeerLost(line["lost"], "takes nothing"))
            else:
                self._tell(Digested(line["digested"], bytes.fromhex(line["digests"])), Sent(line["sent"]))

    def _tell(self, *events: SendingEvent | None) -> None:
        for event in events:
            self._happened.put(event)
        self._around.wake()


class OutsideReceiver(ReceivingCarrier):
    """Its process takes the bytes and writes them where the store lets it."""

    def __init__(self, leg: Leg, around: ReceivingContext) -> None:
        self._store = around.assembly.store
        if self._store.descriptor is None:
            raise WrongInputError("what is no file cannot be written by another process")
        self._file = os.dup(self._store.descriptor)
        self._leg, self._around = leg, around
        self._happened: queue.SimpleQueue[CarrierEvent] = queue.SimpleQueue()
        self._helpers: list[Helper] = []

    def events(self) -> Iterable[CarrierEvent]:
        """What the process has told."""
        return drained(self._happened)

    def join(self, sock: socket.socket, join: Join) -> None:
        """The sender's process."""
        if self._file < 0 or not hmac.compare_digest(join.token, self._leg.token):
            raise RemoteProtocolError("the leg is over, or the token another leg's")
        store = self._store
        word = {
            "role": "receive",
            "suite": store.suite.name,
            "file": self._file,
            "block_size": store.layout.block_size,
            "socket": sock.fileno(),
        }
        with sock:
            self._helpers.append(Helper(word, [self._file, sock.fileno()]))
        start_thread("outside", self._run, self._helpers[-1])

    def close(self, reason: str) -> None:
        """End the process."""
        for helper in self._helpers:
            helper.end()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _run(self, helper: Helper) -> None:
        store, first, stop = self._store, 0, 0
        for line in helper.heard():
            first, stop = line["first"], line["stop"]
            try:
                if "digests" not in line:
                    helper.say(
                        {"write": [b for begin, count in store.claim(first, stop) for b in range(begin, begin + count)]}
                    )
                    continue
                for block, digest in zip(line["written"], line["digests"], strict=True):
                    store.written(block, bytes.fromhex(digest))
                self._happened.put(Stored())
            except StoreError as error:
                self._happened.put(StoreLost(str(error)))
                helper.end()
            store.release(first, stop)
            self._around.wake()
        # It may have been stopped before it had written.
        store.release(first, stop)


# ------------------------------------------------------------------------------------------------ the process


def _say(word: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(word) + "\n")
    sys.stdout.flush()


def _send(word: dict[str, Any], orders: IO[str]) -> None:
    suite, size, count = suite_named(word["suite"]), word["block_size"], word["size"]
    sockets = {name: socket.socket(fileno=number) for name, number in word["sockets"].items()}
    for sock in sockets.values():
        sock.settimeout(PATIENCE_SECONDS)
    block, digested = word["first"], word["digested"]
    for line in orders:
        order = json.loads(line)
        digests = b""
        begun = block
        while block < order["stop"]:
            data = os.pread(word["file"], min(size, count - block * size), block * size)
            for name in list(sockets):
                try:
                    sockets[name].sendall(HEAD.pack(block, len(data)) + data)
                except OSError:
                    sockets.pop(name).close()
                    _say({"lost": name})
            if block >= digested:
                digests += suite.block(data)
            block += 1
        if block > begun:
            _say({"sent": block, "digested": max(begun, digested), "digests": digests.hex()})
        if order["last"]:
            for sock in sockets.values():
                with suppress(OSError):
                    sock.sendall(HEAD.pack(END, 0))
            return


def _receive(word: dict[str, Any], orders: IO[str]) -> None:
    suite, size, sock = suite_named(word["suite"]), word["block_size"], socket.socket(fileno=word["socket"])
    sock.settimeout(None)
    ended = False
    while not ended:
        row: list[tuple[int, memoryview]] = []
        # What is there, and for nothing more is waited.
        while len(row) < BATCH and (not row or select.select([sock], [], [], 0)[0]):
            try:
                block, length = read_head(sock)
                ended = block == END
                if ended:
                    break
                row.append((block, read_bytes(sock, length)))
            except (OSError, EOFError):
                ended = True
                break
        if not row:
            continue
        first, stop = row[0][0], row[-1][0] + 1
        _say({"first": first, "stop": stop})
        write = set(json.loads(orders.readline())["write"])
        taken = [(block, data) for block, data in row if block in write]
        for block, data in taken:
            os.pwrite(word["file"], data, block * size)
        digests = [suite.block(data).hex() for _, data in taken]
        _say({"first": first, "stop": stop, "written": [block for block, _ in taken], "digests": digests})


def main() -> None:
    """One end's process."""
    word = json.loads(sys.argv[1])
    {"send": _send, "receive": _receive}[word["role"]](word, sys.stdin)


if __name__ == "__main__":
    main()
