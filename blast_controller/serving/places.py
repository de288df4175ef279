"""Places for those who have not proved who they are: few, shared out by address, and never full.

Whoever comes gets a place. Where there is none left, the guest goes who has had the longest time among those of the
address that has the most: a flood from one address drives out itself, and not the operator who is just logging in.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address
from typing import Generic, TypeVar

Guest = TypeVar("Guest", bound=Hashable)

_OWN_BITS = 64
"""Of an IPv6 address: whoever has one has all that differ in them."""


@dataclass(slots=True)
class Places(Generic[Guest]):
    """At most `total` guests at once, `per_host` of one address."""

    total: int
    per_host: int
    _guests: dict[Guest, str] = field(default_factory=dict)
    _hosts: dict[str, dict[Guest, int]] = field(default_factory=dict)
    _came: int = 0

    def __len__(self) -> int:
        return len(self._guests)

    def __contains__(self, guest: Guest) -> bool:
        return guest in self._guests

    def enter(self, guest: Guest, address: str) -> Guest | None:
        """Give a place to a guest from this address; returns who has lost one for that."""
        host = host_of(address)
        crowded = host if len(self._hosts.get(host, ())) >= self.per_host else self._max_crowded()
        gone = next(iter(self._hosts[crowded])) if crowded is not None else None
        if gone is not None:
            self.leave(gone)
        self._came += 1
        self._guests[guest] = host
        self._hosts.setdefault(host, {})[guest] = self._came
        return gone

    def leave(self, guest: Guest) -> None:
        """The guest needs no place any more; may have lost it before."""
        host = self._guests.pop(guest, None)
        if host is not None:
            del self._hosts[host][guest]
            if not self._hosts[host]:
                del self._hosts[host]

    def _max_crowded(self) -> str | None:
        """The address with the most guests, of several the one that waits longest; None while there is room."""
        if len(self._guests) < self.total:
            return None
        return max(self._hosts, key=lambda host: (len(self._hosts[host]), -next(iter(self._hosts[host].values()))))


def host_of(address: str) -> str:
    """What counts as one address: an IPv4 address, a network of 64 bits of IPv6, or the text itself."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    return str(parsed.ipv4_mapped or int(parsed) >> _OWN_BITS)
