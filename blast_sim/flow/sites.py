"""Sites over a wide area as numbered links: each a rack of one server, with access links and paths of their own rates.

This is the network of section 2.2 of the paper on balanced multicast: from one site to another data takes the access
link of the sender, the path between the two, and the access link of the receiver.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from algorithms.balanced.network import Floats
from algorithms.balanced.network import Network as Hosts
from blast_sim.fair import Paths
from blast_sim.fair.paths import Numbers, Places
from blast_sim.flow.network import RackNetwork


class DeadPathError(Exception):
    """A method sends over a path of rate 0."""


@dataclass(frozen=True, kw_only=True)
class SiteNetwork(RackNetwork):
    """Sites numbered as the hosts of `model` are; its root and receivers do not matter here."""

    model: Hosts

    @classmethod
    def of(cls, model: Hosts) -> SiteNetwork:
        """Return the sites of a network whose rates are in bit/s. Links that only racks have exist, without traffic."""
        fastest = float(model.widths.max())
        return cls(
            racks=model.size,
            servers_per_rack=1,
            server_rate=fastest,
            uplink_rate=fastest,
            light_rate=fastest,
            model=model,
        )

    @cached_property
    def capacities(self) -> Numbers:
        """The rate of every link; those of the paths come last."""
        rates = self.model.rates
        access = (_finite(self.model.out, rates.sum(axis=1)), _finite(self.model.into, rates.sum(axis=0)))
        return np.concatenate([*access, np.zeros(self._first_path - 2 * self.servers), rates.ravel()])

    def as_hosts(self, racks: Sequence[int]) -> Hosts:
        """Return these sites as the hosts of a balanced multicast from the first to all others.

        Raises DisconnectedError.
        """
        chosen = np.asarray(racks)
        return replace(
            self.model,
            hosts=tuple(self.model.hosts[site] for site in racks),
            root=0,
            receivers=tuple(range(1, len(racks))),
            rates=self.model.rates[np.ix_(chosen, chosen)],
            out=self.model.out[chosen],
            into=self.model.into[chosen],
        )

    def unicast(self, sources: ArrayLike, targets: ArrayLike) -> Paths:
        """Return flows from each source to its target, 3 links each, none to oneself. Raises DeadPathError."""
        one, other = np.asarray(sources, np.int64), np.asarray(targets, np.int64)
        away = one != other
        for dead in np.flatnonzero(away & (self.model.widths[one, other] == 0)).tolist():
            names = self.model.hosts[one[dead]], self.model.hosts[other[dead]]
            raise DeadPathError(
                f"the path from {names[0]} to {names[1]} is dead: compare methods that go around, as trees"
            )
        table = np.stack([one, self._first_path + one * self.racks + other, self.servers + other], axis=1)
        offsets = np.concatenate([[0], np.cumsum(np.where(away, 3, 0))])
        return Paths(offsets, table[away].ravel().astype(np.int32))

    def between_racks(self, sources: Places, targets: Places) -> Paths:
        """Return the flows of `unicast`. Raises DeadPathError."""
        return self.unicast(sources, targets)

    @property
    def _first_path(self) -> int:
        return 2 * self.servers + 4 * self.racks + 2 * self._ports


def _finite(capacities: Floats, total: Floats) -> Floats:
    """Replace infinite access links by the total capacity of all paths there."""
    return np.where(np.isinf(capacities), total, capacities)
