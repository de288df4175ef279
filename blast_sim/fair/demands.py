"""Demands of flows on the links of their paths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from blast_sim.fair.paths import Numbers, Paths, Places


@dataclass(frozen=True, slots=True)
class Demands:
    """Flows share links by weight up to their caps; an entry may stand for several equal flows.

    `shares` are what an entry takes of each of its links for each unit of level (rate of a flow / its weight), and
    `ceilings` the levels at which flows reach their caps.
    """

    weights: Numbers
    shares: Numbers
    ceilings: Numbers

    @classmethod
    def of(
        cls,
        flows: int,
        multiplicity: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        rate_caps: ArrayLike | None = None,
    ) -> Demands:
        """Return the demands of `flows` flows; one number applies to all of them. Raises ValueError."""
        heavy = _each(1.0 if weights is None else weights, "weights", flows)
        # With tens of millions of flows every array counts.
        shares = heavy if multiplicity is None else heavy * _each(multiplicity, "multiplicity", flows)
        if rate_caps is None:
            return cls(heavy, shares, np.full(flows, np.inf))
        caps = np.broadcast_to(np.asarray(rate_caps, np.float64), (flows,))
        if not (caps >= 0).all():
            raise ValueError("rate_caps must be at least 0")
        return cls(heavy, shares, caps / heavy)

    def take(self, flows: Places) -> Demands:
        """Return the demands of these flows."""
        return Demands(self.weights[flows], self.shares[flows], self.ceilings[flows])


def checked_capacities(capacities: ArrayLike) -> Numbers:
    """Return a copy of the capacities as an array. Raises ValueError."""
    room = np.array(capacities, np.float64)
    if room.ndim != 1 or not ((room >= 0) & (room < np.inf)).all():
        raise ValueError("capacities must be one finite number of at least 0 for each link")
    return room


def check_links(paths: Paths, links: int) -> None:
    """Raise ValueError for a path over a link that does not exist."""
    if len(paths.links) and not 0 <= paths.links.min() <= paths.links.max() < links:
        raise ValueError(f"paths name links from {paths.links.min()} to {paths.links.max()}, but there are {links}")


def _each(value: ArrayLike, name: str, flows: int) -> Numbers:
    values = np.array(np.broadcast_to(np.asarray(value, np.float64), (flows,)))
    if not ((values > 0) & (values < np.inf)).all():
        raise ValueError(f"{name} must be finite and above 0")
    return values
