"""Addresses on the loopback for a lab's own servers, kept before they start and when they start anew.

A port that is merely found free is anybody's again at once: the next socket that asks for one may get it.
"""

from __future__ import annotations

import socket
from contextlib import ExitStack

LOOPBACK = "127.0.0.1"


class ReservedAddresses:
    """Each is bound here, where nobody listens; a server that sets SO_REUSEADDR, as servers do, can listen there."""

    def __init__(self) -> None:
        self._held = ExitStack()

    def take(self) -> str:
        """One more, `address:port`. Raises OSError where there is none."""
        sock = self._held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
        sock.bind((LOOPBACK, 0))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return f"{LOOPBACK}:{sock.getsockname()[1]}"

    def close(self) -> None:
        """Give all of them back; twice does nothing more."""
        self._held.close()


def free_address() -> str:
    """An address on the loopback where nothing listened a moment ago, for who cannot keep it (`ReservedAddresses`)."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((LOOPBACK, 0))
        return f"{LOOPBACK}:{probe.getsockname()[1]}"
