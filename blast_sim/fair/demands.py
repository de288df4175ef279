"""What flows ask of the links of their paths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from blast_sim.fair.paths import Numbers, Paths


@dataclass(frozen=True, slots=True)
class Demands:
    """Each entry stands for `multiplicity` equal flows, which share by weight, up to a cap each."""

    weights: Numbers
    multiplicity: Numbers
    caps: Numbers

    @classmethod
    def of(
        cls,
        flows: int,
        multiplicity: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        rate_caps: ArrayLike | None = None,
    ) -> Demands:
        """Demands of so many flows; one number stands for all of them. Raises ValueError."""
        demands = cls(_each(weights, 1.0, flows), _each(multiplicity, 1.0, flows), _each(rate_caps, np.inf, flows))
        for name, values in (("weights", demands.weights), ("multiplicity", demands.multiplicity)):
            if not ((values > 0) & (values < np.inf)).all():
                raise ValueError(f"{name} must be finite and above 0")
        if not (demands.caps >= 0).all():
            raise ValueError("rate_caps must be at least 0")
        return demands

    @property
    def shares(self) -> Numbers:
        """What an entry takes of each of its links when the rate of a flow of weight 1 rises by 1."""
        return self.weights * self.multiplicity

    @property
    def ceilings(self) -> Numbers:
        """The rate that a flow of weight 1 has when these reach their caps."""
        return self.caps / self.weights


def checked_capacities(capacities: ArrayLike) -> Numbers:
    """Capacities as an array of their own. Raises ValueError."""
    room = np.array(capacities, np.float64)
    if room.ndim != 1 or not ((room >= 0) & (room < np.inf)).all():
        raise ValueError("capacities must be one finite number of at least 0 for each link")
    return room


def check_links(paths: Paths, links: int) -> None:
    """Raise ValueError for a path over a link that does not exist."""
    if len(paths.links) and not 0 <= paths.links.min() <= paths.links.max() < links:
        raise ValueError(f"paths name links from {paths.links.min()} to {paths.links.max()}, but there are {links}")


def _each(value: ArrayLike | None, default: float, flows: int) -> Numbers:
    if value is None:
        return np.full(flows, default)
    return np.array(np.broadcast_to(np.asarray(value, np.float64), (flows,)))
