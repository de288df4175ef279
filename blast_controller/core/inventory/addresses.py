"""Allocation of group addresses."""

from __future__ import annotations

from collections.abc import Set
from ipaddress import IPv4Address, IPv4Network


class GroupAddresses:
    """The addresses of a network for multicast groups. `next` is where a free one is looked for first, from 1 on."""

    def __init__(self, network: IPv4Network) -> None:
        self._network = network
        self._used: set[str] = set()
        self.next = 1

    @property
    def used(self) -> Set[str]:
        """Return the allocated addresses."""
        return frozenset(self._used)

    @property
    def count(self) -> int:
        """Return the total number of addresses."""
        return self._network.num_addresses - 2

    def take(self) -> str | None:
        """Allocate an address, or return None if none is free.

        Released addresses come last, so that late packets reach no new group.
        """
        for offset in range(self.count):
            index = (self.next - 1 + offset) % self.count + 1
            address = str(IPv4Address(int(self._network.network_address) + index))
            if address not in self._used:
                self.next = index + 1
                self._used.add(address)
                return address
        return None

    def adopt(self, address: str) -> None:
        """Take over an address of an earlier run."""
        self._used.add(address)

    def free(self, address: str) -> None:
        """Give an address back."""
        self._used.remove(address)
