"""How many may stand at the door: connections in all, those that have not proved who they are, and those of one host.

Strangers cost little (a thread, a few hundred bytes), but their number is bounded, and one host alone cannot take every
place; nor can one that has proved who it is: half of the places are for others. Thread-safe; decides only, and holds no
connection.
"""

from __future__ import annotations

import ipaddress
import threading
from collections import Counter

MAX_CONNECTIONS, MAX_STRANGERS, MAX_STRANGERS_PER_HOST = 1024, 64, 16
"""Of one that was told nothing else."""


class Door:
    """Counts of one who listens. A connection enters as a stranger, may become a guest, and leaves."""

    def __init__(
        self,
        connections: int = MAX_CONNECTIONS,
        strangers: int = MAX_STRANGERS,
        strangers_per_host: int = MAX_STRANGERS_PER_HOST,
    ) -> None:
        self._most = connections
        self._max_strangers, self._max_per_host = strangers, strangers_per_host
        self._lock = threading.Lock()
        self._max_guests_per_host = connections - connections // 2
        self._strangers: Counter[str] = Counter()
        self._guests: Counter[str] = Counter()

    @property
    def strangers(self) -> int:
        """Connections that have not proved who they are."""
        return self._strangers.total()

    @property
    def guests(self) -> int:
        """Connections that have."""
        return self._guests.total()

    def enter(self, host: str) -> str:
        """A connection of `host` wants in: why it may not, or nothing, and then it has entered."""
        host = _neighborhood(host)
        with self._lock:
            if self._strangers.total() + self._guests.total() >= self._most:
                return f"this agent has {self._most} connections, as many as it takes; try again later"
            if self._strangers.total() >= self._max_strangers:
                return f"{self._max_strangers} others are at the door; try again"
            if self._strangers[host] >= self._max_per_host:
                return f"{self._max_per_host} others of your host are at the door; try again"
            if self._guests[host] >= self._max_guests_per_host:
                return f"your host has {self._guests[host]} connections here, as many as one may have; close some"
            self._strangers[host] += 1
        return ""

    def welcome(self, host: str) -> None:
        """A stranger of `host` has proved who it is."""
        with self._lock:
            _remove(self._strangers, host)
            self._guests[_neighborhood(host)] += 1

    def leave(self, host: str, *, guest: bool) -> None:
        """A connection of `host` is over."""
        with self._lock:
            _remove(self._guests if guest else self._strangers, host)


def _remove(counts: Counter[str], address: str) -> None:
    host = _neighborhood(address)
    counts[host] -= 1
    if not counts[host]:
        del counts[host]


def _neighborhood(host: str) -> str:
    """What counts as one host: of IPv6 a network of 64 bits, of which everybody has more addresses than we places."""
    try:
        address = ipaddress.IPv6Address(host)
    except ValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Address(int(address) >> 64 << 64))
