"""Flows that come and go, in arrays: a flow keeps its place as long as it lives, places are used again."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from blast_sim.fair.demands import Demands
from blast_sim.fair.paths import Links, Numbers, Paths, Places, spans

Scalar = TypeVar("Scalar", bound=np.generic)

MIN_SIZE = 1024
"""Rows at the beginning; the table doubles when it is full."""
NO_RATE_YET = np.inf


class Columns(NamedTuple):
    """One place for each flow: its path is `links[starts[f]:starts[f] + lengths[f]]`.

    The level of a flow is its rate divided by its weight (infinite while it has none), `ceilings` are the levels of
    its caps, and `shares` what all flows of its kind take of a link for each unit of level: weight x multiplicity.
    Only the first `tight` of its links can hold it as long as its level is at most `safe`.
    """

    starts: Places
    lengths: Places
    links: Links
    shares: Numbers
    ceilings: Numbers
    levels: Numbers
    alive: NDArray[np.bool_]
    tight: Places
    safe: Numbers

    @classmethod
    def of(cls, paths: Paths, demands: Demands) -> Columns:
        """Return columns of flows that are all present and have no rate yet."""
        flows = len(paths)
        levels = np.full(flows, NO_RATE_YET)
        alive, safe, tight = np.ones(flows, np.bool_), np.full(flows, np.inf), paths.lengths
        shares, ceilings = demands.shares, demands.ceilings
        return cls(paths.offsets[:-1], paths.lengths, paths.links, shares, ceilings, levels, alive, tight, safe)


class FlowTable:
    """Columns that grow, and the weights of their flows, which turn levels into rates."""

    def __init__(self) -> None:
        none = Columns.of(Paths.none(), Demands.of(0))
        self.columns = none
        self.weights: Numbers = np.zeros(0)
        self.ids = 0
        """Number of places that have ever been used."""
        self._used_links = 0
        self._dead_links = 0
        self._free: Places = np.zeros(0, np.int64)
        self._resting: Places = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return self.ids - len(self._free) - len(self._resting)

    @property
    def present(self) -> Places:
        """The flows that are there, in rising order."""
        return np.flatnonzero(self.columns.alive[: self.ids])

    def add(self, paths: Paths, demands: Demands) -> Places:
        """Add these flows; return their ids."""
        ids = self._take_ids(len(paths))
        first, self._used_links = self._used_links, self._used_links + len(paths.links)
        self.columns = self.columns._replace(links=_grown(self.columns.links, self._used_links))
        columns = self.columns
        columns.links[first : self._used_links] = paths.links
        columns.starts[ids] = paths.offsets[:-1] + first
        columns.lengths[ids] = columns.tight[ids] = paths.lengths
        columns.shares[ids] = demands.shares
        columns.ceilings[ids] = demands.ceilings
        columns.levels[ids] = NO_RATE_YET
        columns.alive[ids] = True
        columns.safe[ids] = np.inf
        self.weights[ids] = demands.weights
        return ids

    def check(self, ids: Places) -> None:
        """Raise KeyError when one of these flows is not there or is named twice."""
        known = bool(((ids >= 0) & (ids < self.ids)).all()) and bool(self.columns.alive[ids].all())
        if not known or (len(ids) > 1 and len(np.unique(ids)) < len(ids)):
            raise KeyError("a flow to remove is not there, or is named twice")

    def remove(self, ids: Places) -> None:
        """Forget these flows; their ids rest until `recycle`."""
        self.columns.alive[ids] = False
        self._dead_links += int(self.columns.lengths[ids].sum())
        self._resting = np.concatenate([self._resting, ids])

    def paths(self, ids: Places) -> Paths:
        """Return the paths of these flows."""
        lengths = self.columns.lengths[ids]
        offsets = np.zeros(len(ids) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        return Paths(offsets, self.columns.links[spans(self.columns.starts[ids], lengths)])

    def recycle(self) -> None:
        """Let new flows have the ids of removed ones, and close the gaps of their paths once these are the larger part.

        Nothing may still know a removed flow by its id.
        """
        self._free, self._resting = np.concatenate([self._free, self._resting]), self._free[:0]
        if self._dead_links * 2 <= self._used_links:
            return
        ids = self.present
        paths = self.paths(ids)
        self._used_links, self._dead_links = len(paths.links), 0
        self.columns.links[: self._used_links] = paths.links
        self.columns.starts[ids] = paths.offsets[:-1]

    def _take_ids(self, count: int) -> Places:
        again, self._free = self._free[:count], self._free[count:]
        fresh = np.arange(self.ids, self.ids + count - len(again))
        self.ids += len(fresh)
        columns = self.columns
        self.weights = _grown(self.weights, self.ids)
        self.columns = Columns(
            _grown(columns.starts, self.ids),
            _grown(columns.lengths, self.ids),
            columns.links,
            _grown(columns.shares, self.ids),
            _grown(columns.ceilings, self.ids),
            _grown(columns.levels, self.ids),
            _grown(columns.alive, self.ids),
            _grown(columns.tight, self.ids),
            _grown(columns.safe, self.ids),
        )
        return np.concatenate([again, fresh])


def _grown(array: NDArray[Scalar], needed: int) -> NDArray[Scalar]:
    """Return the array, or a copy with room for at least twice the needed size if it is too small."""
    if len(array) >= needed:
        return array
    larger = np.zeros(max(MIN_SIZE, 2 * needed), array.dtype)
    larger[: len(array)] = array
    return larger
