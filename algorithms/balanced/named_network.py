"""A network by the names of its hosts, as a file or a program describes it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from algorithms.balanced.network import Floats, InvalidNetworkError, Network, UnknownHostError


@dataclass(frozen=True)
class NamedNetwork:
    """A network whose hosts and links are given by name. Rates and capacities are in any one unit.

    Parameters
    ----------
    hosts : sequence of str
        Names of the hosts, each different.
    root : str
        The host that has the data.
    links : iterable of (str, str, float)
        Sender, receiver and rate; a missing link has rate 0.
    receivers : collection of str, optional
        None: all hosts but the root.
    out : mapping of str to float, optional
        Host to its total capacity for sending; a missing host has no limit.
    into : mapping of str to float, optional
        Host to its total capacity for receiving; a missing host has no limit.
    """

    hosts: Sequence[str]
    root: str
    links: Iterable[tuple[str, str, float]]
    receivers: Collection[str] | None = None
    out: Mapping[str, float] = field(default_factory=dict)
    into: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {host: place for place, host in enumerate(self.hosts)}

    def numbered(self) -> Network:
        """Return the network as the algorithms take it, with numbers for hosts.

        Returns
        -------
        Network
            Hosts in the order of `hosts`.

        Raises
        ------
        UnknownHostError
            If the root, a receiver, a link or a capacity names an unknown host.
        DisconnectedError
            If no path of links with a positive rate leads from the root to some receiver.
        InvalidNetworkError
            If a name or a link occurs twice, a link leads from a host to itself, a number is out of range, there is no
            receiver, or the root is one.
        """
        _check_different(self.hosts, "host")
        receivers = [host for host in self.hosts if host != self.root] if self.receivers is None else self.receivers
        _check_different(receivers, "receiver")
        return Network(
            tuple(self.hosts),
            self._place(self.root, "the root"),
            tuple(self._place(host, "a receiver") for host in receivers),
            self._rates(),
            self._capacities(self.out, "out"),
            self._capacities(self.into, "in"),
        )

    def _place(self, name: str, role: str) -> int:
        if name not in self._places:
            raise UnknownHostError(f"{role} is {name!r}, which is not among the hosts")
        return self._places[name]

    def _rates(self) -> Floats:
        rates = np.zeros((len(self.hosts), len(self.hosts)))
        seen = set()
        for start, end, rate in self.links:
            if (start, end) in seen:
                raise InvalidNetworkError(f"the link from {start!r} to {end!r} is there twice")
            seen.add((start, end))
            if start == end:
                raise InvalidNetworkError(f"a link leads from {start!r} to itself: leave it out")
            rates[self._place(start, "the start of a link"), self._place(end, "the end of a link")] = rate
        return rates

    def _capacities(self, given: Mapping[str, float], word: str) -> Floats:
        capacities = np.full(len(self.hosts), np.inf)
        for name, capacity in given.items():
            if capacity == math.inf:
                raise InvalidNetworkError(f"the {word} capacity of {name!r} is infinite: leave it out")
            capacities[self._place(name, f"a host with an {word} capacity")] = capacity
        return capacities


def _check_different(names: Iterable[str], role: str) -> None:
    seen = set()
    for name in names:
        if name in seen:
            raise InvalidNetworkError(f"{role} {name!r} is there twice")
        seen.add(name)
