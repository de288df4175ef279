"""Flows that come and go, in arrays: a flow keeps its place as long as it lives, places are used again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from blast_sim.fair.paths import Links, Numbers, Paths, Places, spans
from blast_sim.fair.rates import Demands

LEAST = 1024


class FlowTable:
    """Paths, demands and levels of flows, indexed by their ids; `links[starts[f]:starts[f] + lengths[f]]` is a path."""

    def __init__(self) -> None:
        self.starts: Places = np.zeros(0, np.int64)
        self.lengths: Places = np.zeros(0, np.int64)
        self.weights: Numbers = np.zeros(0)
        self.multiplicity: Numbers = np.zeros(0)
        self.caps: Numbers = np.zeros(0)
        self.levels: Numbers = np.zeros(0)
        self.alive: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self.links: Links = np.zeros(0, np.int32)
        self.used_links = 0
        self._dead_links = 0
        self._free: Places = np.zeros(0, np.int64)
        self._ids = 0

    def __len__(self) -> int:
        return self._ids - len(self._free)

    @property
    def ids(self) -> Places:
        """The flows that are there, in rising order."""
        return np.flatnonzero(self.alive[: self._ids])

    def add(self, paths: Paths, demands: Demands) -> Places:
        """The ids of these new flows."""
        ids = self._take_ids(len(paths))
        first = self.used_links
        self.used_links += len(paths.links)
        self.links = grown(self.links, self.used_links, np.int32)
        self.links[first : self.used_links] = paths.links
        self.starts[ids] = paths.offsets[:-1] + first
        self.lengths[ids] = paths.lengths
        self.weights[ids] = demands.weights
        self.multiplicity[ids] = demands.multiplicity
        self.caps[ids] = demands.caps
        self.levels[ids] = 0.0
        self.alive[ids] = True
        return ids

    def remove(self, ids: Places) -> None:
        """Forget these flows. Raises KeyError when one is not there or is named twice."""
        known = bool(((ids >= 0) & (ids < self._ids)).all()) and bool(self.alive[ids].all())
        if not known or len(np.unique(ids)) < len(ids):
            raise KeyError("a flow to remove is not there, or is named twice")
        self.alive[ids] = False
        self._dead_links += int(self.lengths[ids].sum())
        self._free = np.concatenate([self._free, ids])

    def paths(self, ids: Places) -> Paths:
        """The paths of these flows."""
        lengths = self.lengths[ids]
        offsets = np.zeros(len(ids) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        return Paths(offsets, self.links[spans(self.starts[ids], lengths)])

    def compact(self) -> None:
        """Close the gaps that the paths of removed flows have left, once they are more than what is in use."""
        if self._dead_links * 2 <= self.used_links:
            return
        ids = self.ids
        paths = self.paths(ids)
        self.links, self.used_links, self._dead_links = paths.links.copy(), len(paths.links), 0
        self.starts[ids] = paths.offsets[:-1]

    def _take_ids(self, count: int) -> Places:
        again, self._free = self._free[:count], self._free[count:]
        fresh = np.arange(self._ids, self._ids + count - len(again))
        self._ids += len(fresh)
        for name, kind in _COLUMNS.items():
            setattr(self, name, grown(getattr(self, name), self._ids, kind))
        return np.concatenate([again, fresh])


_COLUMNS: dict[str, DTypeLike] = {
    "starts": np.int64,
    "lengths": np.int64,
    "weights": np.float64,
    "multiplicity": np.float64,
    "caps": np.float64,
    "levels": np.float64,
    "alive": np.bool_,
}


def grown(array: NDArray[Any], needed: int, kind: DTypeLike) -> NDArray[Any]:
    """The array, or a copy with room for twice of what is needed."""
    if len(array) >= needed:
        return array
    larger = np.zeros(max(LEAST, 2 * needed), kind)
    larger[: len(array)] = array
    return larger
