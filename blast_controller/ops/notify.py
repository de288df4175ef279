"""Talking to the service manager (systemd): ready, reloading, stopping, alive.

The protocol of sd_notify(3): assignments in one datagram to the socket that NOTIFY_SOCKET names. Without that
variable nobody listens, and nothing is sent.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

READY = "READY=1"
STOPPING = "STOPPING=1"
ALIVE = "WATCHDOG=1"


class Notifier:
    """Sends to the service manager that started us. A service manager that does not listen is no fault of ours."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        name = environment.get("NOTIFY_SOCKET", "")
        # A leading @ stands for the abstract namespace (unix(7)).
        self._address = f"\0{name[1:]}" if name.startswith("@") else name
        self.patience = _watchdog_seconds(environment)
        """Seconds without a sign of life after which we are killed; None: nobody watches."""

    def send(self, *assignments: str) -> None:
        """Send e.g. READY."""
        if not self._address:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as out:
            out.sendto("\n".join(assignments).encode(), self._address)

    def reloading(self) -> None:
        """Say that a reload begins; READY ends it."""
        self.send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")


class Watchdog:
    """Tells the service manager that we live, as long as a loop of ours turns.

    `on_loop` has an errand done by that loop. The errand is the sign of life itself, and there is one under way at a
    time: so a loop that hangs ends the signs of life, however well all other threads may be.
    """

    def __init__(self, notifier: Notifier, on_loop: Callable[[Callable[[], None]], None]) -> None:
        self._notifier = notifier
        self._on_loop = on_loop
        self._under_way = False

    @property
    def interval(self) -> float | None:
        """Seconds between two calls of `beat`; None when nobody watches."""
        return None if self._notifier.patience is None else self._notifier.patience / 4

    def beat(self) -> None:
        """Ask the loop for a sign of life."""
        if self._notifier.patience is not None and not self._under_way:
            self._under_way = True
            self._on_loop(self._live)

    def _live(self) -> None:
        self._notifier.send(ALIVE)
        self._under_way = False


def _watchdog_seconds(environment: Mapping[str, str]) -> float | None:
    microseconds = environment.get("WATCHDOG_USEC", "")
    # The variables may have been meant for the process that started us (sd_watchdog_enabled(3)).
    for_us = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    return int(microseconds) / 1e6 if for_us and microseconds.isdecimal() and int(microseconds) else None
