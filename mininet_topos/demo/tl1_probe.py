"""TL1 round trips to the lab's optical switch: a command that moves no mirror."""

from __future__ import annotations

import socket
import time

from blast_base.endpoint import parse_endpoint
from mininet_topos.kernel.errors import DemoError
from tl1_driver.dialects import DIALECTS
from tl1_driver.protocol.session import Answered, CommandFailed, Tl1Session

_DIALECT = DIALECTS["glimmerglass"]
"""The dialect of the demo's switch."""
_TIMEOUT_SECONDS = 60.0
"""A switch of this machine that takes longer is broken."""


class Tl1Probe:
    """A separate TL1 session at `address:port`. Raises `DemoError`."""

    def __init__(self, address: str) -> None:
        host, port = parse_endpoint(address)
        self._session = Tl1Session(_DIALECT.deadlines, _DIALECT.wire)
        try:
            self._socket = socket.create_connection((host, port), _TIMEOUT_SECONDS)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as refusal:
            raise DemoError(f"cannot open a TL1 session to the optical switch at {address}: {refusal}") from refusal

    def seconds(self) -> float:
        """Return the seconds until the switch answers. Raises `DemoError`."""
        started = time.perf_counter()
        ctag = self._session.send(_DIALECT.sign_of_life(), time.monotonic())
        try:
            self._socket.sendall(self._session.data_to_send())
            while not self._answered(ctag):
                pass
        except OSError as refusal:
            raise DemoError(f"the optical switch does not answer: {refusal}") from refusal
        return time.perf_counter() - started

    def _answered(self, ctag: str) -> bool:
        received = self._socket.recv(65536)
        if not received:
            raise ConnectionResetError("the session was closed")
        events = self._session.receive(received, time.monotonic())
        for event in events:
            if isinstance(event, CommandFailed) and event.ctag == ctag:
                raise DemoError(f"the optical switch refuses {_DIALECT.sign_of_life().verb}: {event.error}")
        return any(isinstance(event, Answered) and event.ctag == ctag for event in events)

    def close(self) -> None:
        """End the session."""
        self._socket.close()
