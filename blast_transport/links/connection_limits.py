"""Limits of connections: in total, of unauthenticated ones, and per host.

Unauthenticated connections cost little (a thread, a few hundred bytes), but their number is bounded, and one host
cannot take every slot; neither can an authenticated host: half of the slots are for others. Thread-safe; it decides
only, and holds no connection.
"""

from __future__ import annotations

import ipaddress
import threading
from collections import Counter

MAX_CONNECTIONS, MAX_UNAUTHENTICATED, MAX_UNAUTHENTICATED_PER_HOST = 1024, 64, 16
"""Defaults of a listener."""


class ConnectionLimiter:
    """Counters of a listener's connections: each enters unauthenticated, may become a guest, and leaves."""

    def __init__(
        self,
        connections: int = MAX_CONNECTIONS,
        unauthenticated: int = MAX_UNAUTHENTICATED,
        unauthenticated_per_host: int = MAX_UNAUTHENTICATED_PER_HOST,
    ) -> None:
        self._max_connections = connections
        self._max_unauthenticated, self._max_per_host = unauthenticated, unauthenticated_per_host
        self._lock = threading.Lock()
        self._max_guests_per_host = connections - connections // 2
        self._unauthenticated: Counter[str] = Counter()
        self._guests: Counter[str] = Counter()

    @property
    def unauthenticated(self) -> int:
        """Return the number of unauthenticated connections."""
        return self._unauthenticated.total()

    @property
    def guests(self) -> int:
        """Return the number of authenticated connections."""
        return self._guests.total()

    def enter(self, host: str) -> str:
        """Admit a connection of `host`, or return why it is rejected."""
        host = _neighborhood(host)
        with self._lock:
            if self._unauthenticated.total() + self._guests.total() >= self._max_connections:
                return f"this agent has {self._max_connections} connections, as many as it takes; try again later"
            if self._unauthenticated.total() >= self._max_unauthenticated:
                return f"{self._max_unauthenticated} connections are not authenticated yet; try again"
            if self._unauthenticated[host] >= self._max_per_host:
                return f"{self._max_per_host} connections of your host are not authenticated yet; try again"
            if self._guests[host] >= self._max_guests_per_host:
                return f"your host has {self._guests[host]} connections here, as many as one may have; close some"
            self._unauthenticated[host] += 1
        return ""

    def welcome(self, host: str) -> None:
        """Count a connection of `host` as authenticated."""
        with self._lock:
            _remove(self._unauthenticated, host)
            self._guests[_neighborhood(host)] += 1

    def leave(self, host: str, *, guest: bool) -> None:
        """Remove a connection of `host`."""
        with self._lock:
            _remove(self._guests if guest else self._unauthenticated, host)


def _remove(counts: Counter[str], address: str) -> None:
    host = _neighborhood(address)
    counts[host] -= 1
    if not counts[host]:
        del counts[host]


def _neighborhood(host: str) -> str:
    """Return the unit that counts as one host: an IPv4 address, or a /64 network of IPv6.

    Every IPv6 host has more addresses than there are slots.
    """
    try:
        address = ipaddress.IPv6Address(host)
    except ValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Address(int(address) >> 64 << 64))
