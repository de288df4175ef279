"""The sending side: a file once by light to a group, control and repairs over the packet network."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from socket import socket
from typing import Protocol

from blast_transport.control import LARGEST_SEGMENT_COUNT, Hello, encode
from blast_transport.datagram import HEADER, segment_size_for, wire_bytes
from blast_transport.errors import LightPathError, LocalProtocolError, UnsafeNameError, WrongInputError
from blast_transport.interface import interface_mtu, open_sender_socket
from blast_transport.links import Address, ControlLinks
from blast_transport.pacing import Pacer
from blast_transport.report import ReceiverOutcome, TransferResult
from blast_transport.sender_core import Peer, SenderCore, SenderTimings
from blast_transport.store import new_hash, plain_name, read_exactly

_IDLE_SECONDS = 1.0
# A machine that cannot keep up with the rate must still get to read what the receivers say.
_DATAGRAMS_PER_STEP = 64


class Carrier(Protocol):
    """How the data phase is done. `datagrams` counts what went by light, `digest` is that of the file."""

    datagrams: int
    digest: bytes

    def step(self, core: SenderCore) -> float:
        """Do what is due while `core.sending`; seconds until there is more to do."""


class _LightCarrier:
    """Multicasts the segments in order, paced, and digests them on the way."""

    def __init__(self, sock: socket, descriptor: int, hello: Hello, rate: float) -> None:
        self.datagrams = 0
        self.digest = b""
        self._socket = sock
        self._descriptor = descriptor
        self._hash = new_hash()
        self._buffer = memoryview(bytearray(HEADER.size + hello.segment_size))
        self._rate = rate
        self._pacer: Pacer | None = None

    def step(self, core: SenderCore) -> float:
        """Send what is due. Raises SourceChangedError, LightPathError."""
        now = time.monotonic()
        if self._pacer is None:
            self._pacer = Pacer(self._rate, wire_bytes(core.hello.segment_size), now)
        for _ in range(_DATAGRAMS_PER_STEP):
            if (delay := self._pacer.delay(now)) > 0:
                return delay
            segment = core.take_segment()
            if segment == core.hello.segments:
                self.digest = self._hash.digest()
                core.end_of_data(self.digest, now)
                return 0
            self._pacer.sent(self._send(core.hello, segment), now)
            now = time.monotonic()
        return 0

    def _send(self, hello: Hello, segment: int) -> int:
        end = HEADER.size + hello.length(segment)
        payload = self._buffer[HEADER.size : end]
        read_exactly(self._descriptor, payload, segment * hello.segment_size)
        HEADER.pack_into(self._buffer, 0, hello.session, 0, segment)
        try:
            self._socket.send(self._buffer[:end])
        except OSError as error:
            raise LightPathError(f"the light path takes no datagrams of {end} bytes: {error.strerror}") from error
        self._hash.update(payload)
        self.datagrams += 1
        return wire_bytes(len(payload))


class Sender:
    """Sends files to a fixed set of receivers.

    `receivers` are (name, host, port) of their control addresses on the packet network; `interface_address` is the
    address of our interface on the light path; `mtu` is its MTU in bytes unless given. A context manager; not
    thread-safe. Raises WrongInputError if an argument cannot be used.
    """

    def __init__(
        self,
        receivers: Sequence[Address],
        *,
        interface_address: str,
        mtu: int | None = None,
        timings: SenderTimings | None = None,
    ) -> None:
        self._names = [name for name, _, _ in receivers]
        if not receivers or len(set(self._names)) < len(self._names):
            raise WrongInputError("give at least one receiver, and each only once")
        if any(not 0 < port < 1 << 16 for _, _, port in receivers):
            raise WrongInputError("a receiver's port is not between 1 and 65535")
        own_mtu = interface_mtu(interface_address)
        if mtu is not None and mtu > own_mtu:
            raise WrongInputError(f"an MTU of {mtu} bytes is more than the {own_mtu} of {interface_address}")
        self._interface_address = interface_address
        self._segment_size = segment_size_for(mtu or own_mtu)
        self._timings = timings or SenderTimings()
        self._links = ControlLinks(receivers)

    def __enter__(self) -> Sender:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def connect(self) -> dict[str, str]:
        """Open the control connections that are not open, ahead of a transfer; what failed, name to reason."""
        return self._links.connect(self._timings.connect)

    def send(self, path: Path, group: str, port: int, rate: float) -> TransferResult:
        """Multicast a file to `group`:`port` at `rate` bits/s on the wire and see it confirmed by every receiver.

        A receiver that fails does not disturb the others; its outcome says why. Raises WrongInputError if an argument
        cannot be used, SourceChangedError if the file shrinks, LightPathError if the interface refuses.
        """
        Pacer(rate, wire_bytes(self._segment_size), 0.0)
        with (
            opened(path) as descriptor,
            open_sender_socket(self._interface_address, group, port) as sock,
        ):
            hello = self._hello(path, descriptor, self._segment_size, (group, port))
            return self._transfer(hello, descriptor, _LightCarrier(sock, descriptor, hello, rate))

    def send_packets(self, path: Path, descriptor: int, segment_size: int, carrier: Carrier) -> TransferResult:
        """The same session with every segment over the control connections (`blast_transport.unicast`)."""
        return self._transfer(self._hello(path, descriptor, segment_size, ("", 0)), descriptor, carrier)

    def close(self) -> None:
        """Close the control connections."""
        self._links.close()

    @staticmethod
    def _hello(path: Path, descriptor: int, segment_size: int, group: tuple[str, int]) -> Hello:
        size = os.fstat(descriptor).st_size
        hello = Hello(secrets.randbits(32), path.name, size, segment_size, *group)
        try:
            plain_name(path.name)
            encode(hello)
        except (UnsafeNameError, LocalProtocolError) as error:
            raise WrongInputError(f"{path} cannot be sent under its name: {error}") from error
        if hello.segments > LARGEST_SEGMENT_COUNT:
            raise WrongInputError(f"{path} is too large: at most {LARGEST_SEGMENT_COUNT} segments")
        return hello

    def _transfer(self, hello: Hello, descriptor: int, carrier: Carrier) -> TransferResult:
        unreachable = self.connect()
        self._links.expedite(by_light=bool(hello.group))
        core = SenderCore(hello, self._names, time.monotonic(), self._timings)
        for name, reason in unreachable.items():
            core.lose(name, reason)
        try:
            began = self._run(core, descriptor, carrier)
        except BaseException:
            self._links.abort()
            raise
        seconds = time.monotonic() - began
        self._links.drop_failed(core)
        return TransferResult(
            file=hello.name,
            session=hello.session,
            bytes=hello.size,
            digest=carrier.digest.hex(),
            seconds=seconds,
            datagrams=carrier.datagrams,
            repaired_bytes=0 if not hello.group else sum(peer.repaired_bytes for peer in core.peers.values()),
            receivers=tuple(_outcome(name, peer) for name, peer in core.peers.items()),
        )

    def _run(self, core: SenderCore, descriptor: int, carrier: Carrier) -> float:
        """Drive the session to its end; when its data began."""
        began: float | None = None
        while not core.over:
            wait = _IDLE_SECONDS
            if core.sending:
                began = began or time.monotonic()
                wait = carrier.step(core)
            now = time.monotonic()
            if (deadline := core.deadline()) is not None:
                wait = min(wait, max(0.0, deadline - now))
            self._links.exchange(core, descriptor, wait)
            core.tick(time.monotonic())
        return began or time.monotonic()


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """A descriptor of a regular file to send. Raises WrongInputError if there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        raise WrongInputError(f"cannot read {path}: {error.strerror}") from error
    try:
        if not path.is_file():
            raise WrongInputError(f"{path} is not a regular file")
        yield descriptor
    finally:
        os.close(descriptor)


def _outcome(name: str, peer: Peer) -> ReceiverOutcome:
    return ReceiverOutcome(
        name=name,
        complete=not peer.reason,
        reason=peer.reason,
        repaired_bytes=peer.fin.repaired_bytes if peer.fin else 0,
        first_datagram=peer.fin.first_datagram if peer.fin else None,
    )
