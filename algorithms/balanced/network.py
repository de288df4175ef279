"""The network of a multicast, as section 2.2 of the paper models it.

den Burger, Kielmann, Bal: Balanced Multicasting: High-throughput Communication for Grid Applications. SC 2005. Data
from one host to another takes the access link of the sender, the path between the two, and the access link of the
receiver. A path has a maximum rate, an access link a capacity for each direction, and nothing else is shared. Rates are
in any one unit. Hosts are numbered by their place; names are for output only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class InvalidNetworkError(ValueError):
    """An invalid network for a multicast; the text is one sentence."""


class UnknownHostError(InvalidNetworkError):
    """A root, a receiver, a link or a capacity names an unknown host."""


class DisconnectedError(InvalidNetworkError):
    """No path of links with a positive rate leads from the root to these `receivers` (names)."""

    def __init__(self, root: str, receivers: Sequence[str]) -> None:
        super().__init__(
            f"no way of links with a rate above 0 leads from {root!r} to {', '.join(map(repr, receivers))}"
        )
        self.receivers = tuple(receivers)


@dataclass(frozen=True, eq=False)
class Network:
    """Hosts, the root that has the data, and the receivers; the other hosts may forward it.

    The given arrays become read-only.

    Parameters
    ----------
    hosts : tuple of str
        Names of the n hosts.
    root : int
        Number of the host that has the data.
    receivers : tuple of int
        Numbers of the hosts that receive the data.
    rates : array of float, n x n
        `rates[i, j]` is the capacity of the path from i to j, 0 if there is none.
    out, into : array of float, n
        Total capacities of each host for sending and receiving, infinite if unlimited.

    Raises
    ------
    DisconnectedError
        If no path of links with a positive rate leads from the root to some receiver.
    InvalidNetworkError
        If a rate or capacity is out of range, there is no receiver, or the root is one.
    """

    hosts: tuple[str, ...]
    root: int
    receivers: tuple[int, ...]
    rates: Floats
    out: Floats
    into: Floats

    def __post_init__(self) -> None:
        for numbers in (self.rates, self.out, self.into):
            numbers.setflags(write=False)
        _check_numbers(self)
        if not self.receivers:
            raise InvalidNetworkError("the receivers are empty: name at least one receiver")
        if self.root in self.receivers:
            raise InvalidNetworkError(f"the root {self.hosts[self.root]!r} is among the receivers: leave it out there")
        reached = self._reached()
        if cut_off := [self.hosts[host] for host in self.receivers if host not in reached]:
            raise DisconnectedError(self.hosts[self.root], cut_off)

    @cached_property
    def widths(self) -> Floats:
        """The maximum rate of a single stream from i to j: the minimum of the path and both access links.

        It is 0 from a host to itself.
        """
        widths = np.minimum(np.minimum(self.rates, self.out[:, None]), self.into[None, :])
        np.fill_diagonal(widths, 0.0)
        widths.setflags(write=False)
        return widths

    @property
    def size(self) -> int:
        """The number of hosts."""
        return len(self.hosts)

    @property
    def to_all(self) -> bool:
        """True if every host but the root receives."""
        return len(self.receivers) == self.size - 1

    def _reached(self) -> set[int]:
        found, waiting = {self.root}, [self.root]
        for host in waiting:
            fresh = set(np.flatnonzero(self.widths[host]).tolist()) - found
            found |= fresh
            waiting += fresh
        return found


def _check_numbers(network: Network) -> None:
    for one, other in np.argwhere(~((network.rates >= 0) & (network.rates < np.inf))).tolist():
        raise InvalidNetworkError(
            f"the link from {network.hosts[one]!r} to {network.hosts[other]!r} has the rate "
            f"{network.rates[one, other]:g}, which is no finite number from 0 on"
        )
    for capacities, word in ((network.out, "out"), (network.into, "in")):
        for host in np.flatnonzero(~(capacities >= 0)).tolist():
            raise InvalidNetworkError(
                f"the {word} capacity of {network.hosts[host]!r} is {capacities[host]:g}, which is no number from 0 on"
            )
