"""Transports for TL1: the interface, and plain TCP. `tl1_driver.ssh` is the other implementation."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from optical_switch.unsolicited import FloodError
from tl1_driver.protocol.errors import SwitchUnreachableError

__all__ = ["FloodError", "Tcp", "Tl1Transport"]


class Tl1Transport(Protocol):
    """A transport that opens a session to a switch."""

    async def open(self, link: asyncio.Protocol, host: str, port: int, seconds: float) -> None:
        """Open a session and connect it to a protocol.

        From then on `link` is served as asyncio serves a protocol, and its transport can at least write, close and
        abort. Its `connection_lost` is called when the connection has fully ended, with `FloodError` after a flood. If
        `open` fails, it leaves nothing open.

        Parameters
        ----------
        link : asyncio.Protocol
            Protocol that receives the bytes of TL1.
        host : str
            Name or address of the switch.
        port : int
            TCP port of the switch.
        seconds : float
            Time limit, unless the transport has one of its own.

        Raises
        ------
        SwitchUnreachableError
            If no session can be opened.
        """

    @property
    def secrets(self) -> frozenset[str]:
        """Texts that must not appear in transcripts or logs."""


@dataclass(frozen=True, slots=True)
class Tcp:
    """Plain TCP, which anyone on the network path can read and change."""

    async def open(self, link: asyncio.Protocol, host: str, port: int, seconds: float) -> None:
        """Connect without Nagle's algorithm, whose delay would exceed that of the switch.

        Parameters
        ----------
        link : asyncio.Protocol
            Protocol that receives the bytes of TL1.
        host : str
            Name or address of the switch.
        port : int
            TCP port of the switch.
        seconds : float
            Time limit for the connection.

        Raises
        ------
        SwitchUnreachableError
            If no connection can be established in time.
        """
        try:
            async with asyncio.timeout(seconds):
                transport, _ = await asyncio.get_running_loop().create_connection(lambda: link, host, port)
        except TimeoutError as error:
            message = f"optical switch at {host}:{port} does not accept a connection within {seconds:g} s"
            raise SwitchUnreachableError(message) from error
        except OSError as error:
            message = f"optical switch at {host}:{port} is not reachable: {error.strerror or error}"
            raise SwitchUnreachableError(message) from error
        # The socket of a connection that the switch has already closed is gone; the link is notified.
        with suppress(OSError):
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @property
    def secrets(self) -> frozenset[str]:
        """The empty set."""
        return frozenset()
