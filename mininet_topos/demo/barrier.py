"""Round trips of an OpenFlow barrier to a running Open vSwitch, without rules or a controller."""

from __future__ import annotations

import os
import socket
import struct
import time
from pathlib import Path

from mininet_topos.kernel.errors import DemoError

VERSION = 4
"""OpenFlow 1.3."""
HELLO, ERROR, ECHO_REQUEST, ECHO_REPLY, BARRIER_REQUEST, BARRIER_REPLY = 0, 1, 2, 3, 20, 21
_HEADER = struct.Struct("!BBHI")
_RUN_FOLDER = Path(os.environ.get("OVS_RUNDIR", "/var/run/openvswitch"))
_TIMEOUT_SECONDS = 60.0
"""A switch of this machine that takes longer is broken."""


class BarrierProbe:
    """A connection to a bridge's management socket, where the same switch speaks OpenFlow. Raises `DemoError`."""

    def __init__(self, bridge: str) -> None:
        self._bridge = bridge
        self._number = 0
        self._received = b""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(_TIMEOUT_SECONDS)
        try:
            self._socket.connect(str(_RUN_FOLDER / f"{bridge}.mgmt"))
            self._send(HELLO, 0)
            self._await(HELLO)
        except OSError as refusal:
            self._socket.close()
            raise DemoError(f"cannot connect to the bridge {bridge} by OpenFlow: {refusal}") from refusal

    def seconds(self) -> float:
        """Return the seconds until the switch answers one barrier. Raises `DemoError`."""
        self._number += 1
        started = time.perf_counter()
        try:
            self._send(BARRIER_REQUEST, self._number)
            self._await(BARRIER_REPLY)
        except OSError as refusal:
            raise DemoError(f"the bridge {self._bridge} does not answer a barrier: {refusal}") from refusal
        return time.perf_counter() - started

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _send(self, kind: int, number: int, body: bytes = b"") -> None:
        self._socket.sendall(_HEADER.pack(VERSION, kind, _HEADER.size + len(body), number) + body)

    def _await(self, expected: int) -> None:
        while True:
            kind, number, body = self._message()
            if kind == expected:
                return
            if kind == ECHO_REQUEST:
                self._send(ECHO_REPLY, number, body)
            elif kind == ERROR:
                raise DemoError(f"the bridge {self._bridge} answered with an OpenFlow error: {body.hex()}")

    def _message(self) -> tuple[int, int, bytes]:
        _, kind, length, number = _HEADER.unpack(self._exactly(_HEADER.size))
        return kind, number, self._exactly(length - _HEADER.size)

    def _exactly(self, count: int) -> bytes:
        while len(self._received) < count:
            more = self._socket.recv(65536)
            if not more:
                raise ConnectionResetError("the connection was closed")
            self._received += more
        found, self._received = self._received[:count], self._received[count:]
        return found
