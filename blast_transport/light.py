"""The light that a transfer is carried by: it comes and goes, on one group and then on another.

`Light` is a permission to send, `Beam` what one thread tells another about it, `LightCarrier` the sending itself.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from socket import socket

from blast_transport.control import Hello
from blast_transport.datagram import HEADER, wire_bytes
from blast_transport.errors import LightPathError
from blast_transport.interface import open_sender_socket
from blast_transport.pacing import Pacer
from blast_transport.sender_core import SenderCore
from blast_transport.store_old import new_hash, read_exactly

_DARK_SECONDS = 1.0
# A machine that cannot keep up with the rate must still get to read what the receivers say.
_DATAGRAMS_PER_STEP = 64


@dataclass(frozen=True, slots=True)
class Light:
    """Permission to multicast to `group`:`port` at `rate` bits/s on the wire, until a time.monotonic()."""

    group: str
    port: int
    rate: float
    until: float = math.inf


class Beam:
    """The light of one transfer, told by whoever has the grants and followed by the thread that sends.

    `reached`: all bytes of the file before this one have been sent. Every method may be called from any thread.
    """

    def __init__(self, light: Light) -> None:
        self.first = light
        self.reached = 0
        self.wake: Callable[[], None] = lambda: None
        self._orders: deque[Light | str] = deque()

    def shine(self, light: Light) -> None:
        """There is light, from now on or for longer."""
        self._order(light)

    def darken(self) -> None:
        """There is no light until `shine`; receivers keep what they have, and repairs go on."""
        self._order(Light(self.first.group, self.first.port, self.first.rate, -math.inf))

    def give_up(self, reason: str) -> None:
        """End the transfer as failed, in one sentence."""
        self._order(reason)

    def take_order(self) -> Light | str | None:
        """The next change, or the reason for giving up; None if there is none."""
        return self._orders.popleft() if self._orders else None

    def _order(self, order: Light | str) -> None:
        self._orders.append(order)
        self.wake()


class LightCarrier:
    """Multicasts the segments in order, paced, while there is light, and digests them on the way."""

    def __init__(self, interface_address: str, descriptor: int, hello: Hello, beam: Beam) -> None:
        self.datagrams = 0
        self.digest = b""
        self._interface_address = interface_address
        self._descriptor = descriptor
        self._beam = beam
        self._light = beam.first
        self._group = (beam.first.group, beam.first.port)
        self._socket = open_sender_socket(interface_address, *self._group)
        self._hash = new_hash()
        self._buffer = memoryview(bytearray(HEADER.size + hello.segment_size))
        self._pacer: Pacer | None = None

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def obey(self, core: SenderCore) -> None:
        """Follow what was told through the beam. Raises WrongInputError for light that cannot be used."""
        while (order := self._beam.take_order()) is not None:
            if isinstance(order, str):
                for name in core.peers:
                    core.lose(name, order)
            else:
                if order.rate != self._light.rate:
                    self._pacer = None
                self._light = order

    def step(self, core: SenderCore) -> float:
        """Send what is due. Raises SourceChangedError, LightPathError, WrongInputError."""
        hello, now = core.hello, time.monotonic()
        if self._pacer is None:
            self._pacer = Pacer(self._light.rate, wire_bytes(hello.segment_size), now)
        for _ in range(_DATAGRAMS_PER_STEP):
            if (delay := self._pacer.delay(now)) > 0:
                return delay
            if core.next_segment == hello.segments:
                self.digest = self._hash.digest()
                core.end_of_data(self.digest, now)
                return 0
            if now >= self._light.until:
                return _DARK_SECONDS
            if self._group != (self._light.group, self._light.port):
                self._move(core, now)
                return 0
            self._pacer.sent(self._send(hello, core.take_segment()), now)
            now = time.monotonic()
        return 0

    def _move(self, core: SenderCore, now: float) -> None:
        group = (self._light.group, self._light.port)
        sock: socket = open_sender_socket(self._interface_address, *group)
        self._socket.close()
        self._socket, self._group = sock, group
        core.tune(*group, now)

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
        self._beam.reached += len(payload)
        return wire_bytes(len(payload))
