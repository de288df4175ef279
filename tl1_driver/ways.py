"""How bytes get to a switch and back: the interface, and plain TCP. `tl1_driver.ssh` is the other way."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from tl1_driver.errors import SwitchUnreachable


class TooMuchSaid(ConnectionError):
    """The way was ended because what came on it beside TL1 was far too much."""


class Way(Protocol):
    """Opens a session to a switch."""

    async def open(self, link: asyncio.Protocol, host: str, port: int, seconds: float) -> None:
        """Connect `link`, within `seconds` if the way has no limit of its own. Raises `SwitchUnreachable`.

        From then on `link` is served as asyncio serves a protocol, and its transport can at least write, close and
        abort. It is told that the connection is lost when nothing of it is left, by `TooMuchSaid` after a flood.
        Where nothing could be opened nothing is left either.
        """

    @property
    def secrets(self) -> frozenset[str]:
        """What must not be written anywhere."""


@dataclass(frozen=True, slots=True)
class Tcp:
    """Plain TCP, which whoever is on the way can read and change."""

    async def open(self, link: asyncio.Protocol, host: str, port: int, seconds: float) -> None:
        """Without Nagle's algorithm, whose delay would exceed that of the switch."""
        try:
            async with asyncio.timeout(seconds):
                transport, _ = await asyncio.get_running_loop().create_connection(lambda: link, host, port)
        except TimeoutError as error:
            message = f"optical switch at {host}:{port} does not accept a connection within {seconds:g} s"
            raise SwitchUnreachable(message) from error
        except OSError as error:
            raise not_reachable(host, port, error) from error
        # A switch that hung up at once has no socket any more; the link knows.
        with suppress(OSError):
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @property
    def secrets(self) -> frozenset[str]:
        """None."""
        return frozenset()


def not_reachable(host: str, port: int, error: OSError) -> SwitchUnreachable:
    """What no connection could be made for."""
    return SwitchUnreachable(f"optical switch at {host}:{port} is not reachable: {error.strerror or error}")
