"""Messages to the service manager (systemd) by the protocol of sd_notify(3), if it started this process."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress

READY = "READY=1"
STOPPING = "STOPPING=1"
ALIVE = "WATCHDOG=1"


class AgentNotifier:
    """Client of the service manager: sends assignments to the socket NOTIFY_SOCKET; does nothing without it."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        name = environment.get("NOTIFY_SOCKET", "")
        # A leading @ stands for the abstract namespace (unix(7)).
        self._address = f"\0{name[1:]}" if name.startswith("@") else name

    def send(self, *assignments: str) -> None:
        """Send assignments, for example READY; ignore a service manager that does not listen."""
        if not self._address:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as out:
            out.sendto("\n".join(assignments).encode(), self._address)

    def reloading(self) -> None:
        """Announce a reload; READY ends it."""
        self.send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")
