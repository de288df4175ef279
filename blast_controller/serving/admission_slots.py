"""Places of unauthenticated connections: few, shared by address, and never full.

Every new connection gets a place. If none is free, the oldest connection of the address with the most places is closed:
a flood from one address displaces itself, and not an operator who is logging in.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address
from typing import Generic, TypeVar

Guest = TypeVar("Guest", bound=Hashable)

_OWN_BITS = 64
"""The prefix length of an IPv6 site: one client usually has all addresses within it."""


@dataclass(slots=True)
class AdmissionSlots(Generic[Guest]):
    """At most `total` guests at once, `per_host` of one address."""

    total: int
    per_host: int
    _guests: dict[Guest, str] = field(default_factory=dict)
    _hosts: dict[str, dict[Guest, int]] = field(default_factory=dict)
    _arrivals: int = 0

    def __len__(self) -> int:
        return len(self._guests)

    def __contains__(self, guest: Guest) -> bool:
        return guest in self._guests

    def enter(self, guest: Guest, address: str) -> Guest | None:
        """Give a place to a guest from this address; return the guest that lost its place for that, or None."""
        host = host_of(address)
        crowded = host if len(self._hosts.get(host, ())) >= self.per_host else self._max_crowded()
        leaving = next(iter(self._hosts[crowded])) if crowded is not None else None
        if leaving is not None:
            self.leave(leaving)
        self._arrivals += 1
        self._guests[guest] = host
        self._hosts.setdefault(host, {})[guest] = self._arrivals
        return leaving

    def leave(self, guest: Guest) -> None:
        """Release the guest's place, if it still has one."""
        host = self._guests.pop(guest, None)
        if host is not None:
            del self._hosts[host][guest]
            if not self._hosts[host]:
                del self._hosts[host]

    def _max_crowded(self) -> str | None:
        """Return the address with the most guests, the oldest at a tie; None while there is room."""
        if len(self._guests) < self.total:
            return None
        return max(self._hosts, key=lambda host: (len(self._hosts[host]), -next(iter(self._hosts[host].values()))))


def host_of(address: str) -> str:
    """Return the unit of accounting for an address: an IPv4 address, a 64-bit network of IPv6, or the text itself."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    return str(parsed.ipv4_mapped or int(parsed) >> _OWN_BITS)
