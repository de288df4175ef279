"""Notification of the service manager (systemd): ready, reloading, stopping, alive.

The protocol of sd_notify(3): assignments in one datagram to the socket that NOTIFY_SOCKET names. Without that variable
nothing is sent.
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
        self.watchdog_seconds = _watchdog_seconds(environment)
        """The watchdog timeout in seconds; None: no watchdog."""

    def send(self, *assignments: str) -> None:
        """Send e.g. READY."""
        if not self._address:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as out:
            out.sendto("\n".join(assignments).encode(), self._address)

    def reloading(self) -> None:
        """Report the begin of a reload; READY ends it."""
        self.send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")


class Watchdog:
    """Notifies the service manager that the process is alive, as long as an event loop runs.

    `on_loop` runs a function on that loop. The function sends the keep-alive, one at a time, so a hanging loop ends the
    keep-alives whatever other threads do.
    """

    def __init__(self, notifier: Notifier, on_loop: Callable[[Callable[[], None]], None]) -> None:
        self._notifier = notifier
        self._on_loop = on_loop
        self._under_way = False

    @property
    def interval(self) -> float | None:
        """Return the seconds between two calls of `beat`; None without a watchdog."""
        return None if self._notifier.watchdog_seconds is None else self._notifier.watchdog_seconds / 4

    def beat(self) -> None:
        """Request a keep-alive from the loop."""
        if self._notifier.watchdog_seconds is not None and not self._under_way:
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
