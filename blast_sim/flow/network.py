"""A rack network as numbered links: servers, rack uplinks, light, and a second network that multicasts packets.

Every link is full duplex, an up and a down link; one core switch joins the racks and has no limit of its own (Blast,
section VI-A). Servers are numbered through all racks, `rack * servers_per_rack + place`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from algorithms.balanced.network import Network as Hosts
from blast_sim.fair import Paths
from blast_sim.fair.paths import Numbers, Places


@dataclass(frozen=True)
class RackNetwork:
    """Racks of servers; rates in bit/s. Each rack has `light_ports` optical ports at `light_rate`.

    `multicast_rate` is the rate of a rack's link to a separate packet network that duplicates in its switches.
    """

    racks: int
    servers_per_rack: int
    server_rate: float
    uplink_rate: float
    light_rate: float
    light_ports: int = 1
    multicast_rate: float = 10e9

    @property
    def servers(self) -> int:
        """The number of servers."""
        return self.racks * self.servers_per_rack

    @cached_property
    def capacities(self) -> Numbers:
        """The rate of every link."""
        counts = (self.servers, self.servers, self.racks, self.racks, *[self._ports] * 2, self.racks, self.racks)
        rates = (*[self.server_rate] * 2, *[self.uplink_rate] * 2, *[self.light_rate] * 2, *[self.multicast_rate] * 2)
        return np.repeat(np.array(rates), counts)

    def rack_of(self, server: int) -> int:
        """Return the rack of a server."""
        return server // self.servers_per_rack

    def servers_of(self, rack: int) -> range:
        """Return the servers of a rack."""
        return range(rack * self.servers_per_rack, (rack + 1) * self.servers_per_rack)

    def as_hosts(self, racks: Sequence[int]) -> Hosts:
        """Return these racks as the hosts of a balanced multicast from the first to all others.

        The model is that of section 2.2 of the paper on balanced multicast. Every server has one link only, for data
        within its rack and to other racks. So a rack has the rate of a server's link, or of its uplink if that is
        slower, however many servers it has.
        """
        rate, size = min(self.server_rate, self.uplink_rate), len(racks)
        access = np.full(size, rate)
        paths = np.full((size, size), rate)
        return Hosts(tuple(map(str, racks)), 0, tuple(range(1, size)), paths, access, access.copy())

    # ----------------------------------------------------------------------------------------------- paths

    def unicast(self, sources: ArrayLike, targets: ArrayLike) -> Paths:
        """Return flows from each source to its target: 2 links within a rack, 4 between racks, none to oneself."""
        one, other = np.asarray(sources, np.int64), np.asarray(targets, np.int64)
        here, there = one // self.servers_per_rack, other // self.servers_per_rack
        columns = (one, self._rack_up(here), self._rack_down(there), self.servers + other)
        lengths = np.where(one == other, 0, np.where(here == there, 2, 4))
        used = np.stack([lengths > 0, lengths == 4, lengths == 4, lengths > 0], axis=1)
        offsets = np.zeros(len(one) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        return Paths(offsets, np.stack(columns, axis=1)[used].astype(np.int32))

    def between_racks(self, sources: Places, targets: Places) -> Paths:
        """Return flows from each source to its target, all between different racks; faster than `unicast`."""
        table = np.empty((len(sources), 4), np.int32)
        table[:, 0] = sources
        table[:, 1] = self._rack_up(sources // self.servers_per_rack)
        table[:, 2] = self._rack_down(targets // self.servers_per_rack)
        table[:, 3] = self.servers + targets
        return Paths.rows(table)

    def chain(self, servers: Sequence[int]) -> Paths:
        """Return one flow that passes through all these servers, one after the other."""
        return _joined(self.unicast(servers[:-1], servers[1:]))

    def session(self, sender: int, receivers: Iterable[int], between: Iterable[int]) -> Paths:
        """Return one flow that leaves a server, takes the links `between` and arrives at all receivers."""
        return Paths.of([[sender, *between, *(self.servers + receiver for receiver in receivers)]])

    def light(self, root: tuple[int, int], leaves: Iterable[tuple[int, int]]) -> list[int]:
        """Return the links of a light tree between optical ports, each a (rack, place among its ports)."""
        first = 2 * self.servers + 2 * self.racks
        return [first + self._port(*root), *(first + self._ports + self._port(*leaf) for leaf in leaves)]

    def shared_tree(self, sender_rack: int, racks: Iterable[int]) -> list[int]:
        """Return the links of a tree between racks in the network of the servers, from one rack to others."""
        first = 2 * self.servers
        return [first + sender_rack, *(first + self.racks + rack for rack in racks)]

    def separate_tree(self, sender_rack: int, racks: Iterable[int]) -> list[int]:
        """Return the links of a tree in the second packet network, from one rack to others."""
        first = 2 * self.servers + 2 * self.racks + 2 * self._ports
        return [first + sender_rack, *(first + self.racks + rack for rack in racks)]

    @property
    def _ports(self) -> int:
        return self.racks * self.light_ports

    def _port(self, rack: int, place: int) -> int:
        return rack * self.light_ports + place

    def _rack_up(self, racks: Places) -> Places:
        return 2 * self.servers + racks

    def _rack_down(self, racks: Places) -> Places:
        return 2 * self.servers + self.racks + racks


def _joined(paths: Paths) -> Paths:
    return Paths(np.array([0, len(paths.links)], np.int64), paths.links)
