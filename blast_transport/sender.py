"""The sending side: a file once by light, in one go or with pauses; control and repairs over the packet network."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol

from blast_transport.control import LARGEST_SEGMENT_COUNT, Hello, encode
from blast_transport.datagram import segment_size_for, wire_bytes
from blast_transport.errors import LocalProtocolError, UnsafeNameError, WrongInputError
from blast_transport.interface import interface_mtu
from blast_transport.light import Beam, Light, LightCarrier
from blast_transport.links import Address, ControlLinks
from blast_transport.pacing import Pacer
from blast_transport.report import ReceiverOutcome, TransferResult
from blast_transport.sender_core import Peer, SenderCore, SenderTimings
from blast_transport.store_old import plain_name

_IDLE_SECONDS = 1.0


class Carrier(Protocol):
    """How the data phase is done. `datagrams` counts what went by light, `digest` is that of the file."""

    datagrams: int
    digest: bytes

    def obey(self, core: SenderCore) -> None:
        """Do what others have ordered meanwhile, whatever state the session is in."""

    def step(self, core: SenderCore) -> float:
        """Do what is due while `core.sending`; seconds until there is more to do."""


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
        return self.transmit(path, Beam(Light(group, port, rate)))

    def transmit(self, path: Path, beam: Beam) -> TransferResult:
        """Multicast a file by light that may end, and go on later or at another group, as the beam is told.

        Begins with `beam.first`, and returns when every receiver has confirmed or failed. Raises as `send` does.
        """
        Pacer(beam.first.rate, wire_bytes(self._segment_size), 0.0)
        with opened(path) as descriptor:
            hello = self._hello(path, descriptor, self._segment_size, (beam.first.group, beam.first.port))
            with closing(LightCarrier(self._interface_address, descriptor, hello, beam)) as carrier:
                beam.wake = self._links.wake
                return self._transfer(hello, descriptor, carrier)

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
            carrier.obey(core)
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
