"""Loopback addresses for a lab's servers, reserved before the servers start and while they restart.

A port that is only found to be free is available to other processes at once: the next bind may take it.
"""

from __future__ import annotations

import socket
from contextlib import ExitStack

LOOPBACK = "127.0.0.1"


class ReservedAddresses:
    """Reserved addresses: each is bound without listening.

    A server that sets SO_REUSEADDR, as servers do, can listen there.
    """

    def __init__(self) -> None:
        self._held = ExitStack()

    def take(self) -> str:
        """Reserve one more address, `address:port`.

        Raises OSError if there is none.
        """
        sock = self._held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
        sock.bind((LOOPBACK, 0))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return f"{LOOPBACK}:{sock.getsockname()[1]}"

    def close(self) -> None:
        """Give all of them back; twice does nothing more."""
        self._held.close()


def free_address() -> str:
    """Return a loopback address that was free a moment ago, for callers that cannot use `ReservedAddresses`."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((LOOPBACK, 0))
        return f"{LOOPBACK}:{probe.getsockname()[1]}"
