"""Paths of flows as one array: a path may have any number of links, so that a session of light is one flow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]
Links = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Paths:
    """The links of flow f are `links[offsets[f]:offsets[f + 1]]` (CSR); `links` are indices of capacities.

    A link that a path names n times carries the flow n times. A path without links is a loop-back inside a host.
    """

    offsets: Places
    links: Links

    def __post_init__(self) -> None:
        offsets, links = self.offsets, self.links
        good = (
            offsets.ndim == links.ndim == 1
            and len(offsets) > 0
            and offsets[0] == 0
            and offsets[-1] == len(links)
            and bool((offsets[1:] >= offsets[:-1]).all())
        )
        if not good:
            raise ValueError("offsets must rise from 0 to the number of links")

    @classmethod
    def of(cls, paths: Iterable[Sequence[int]]) -> Paths:
        """Return paths from a sequence of links for each flow."""
        listed = list(paths)
        offsets = np.zeros(len(listed) + 1, np.int64)
        np.cumsum([len(path) for path in listed], out=offsets[1:])
        return cls(offsets, np.array([link for path in listed for link in path], np.int32))

    @classmethod
    def rows(cls, table: ArrayLike) -> Paths:
        """Return paths of one length: row f of the table (flows x links) is the path of flow f."""
        array = np.ascontiguousarray(table, np.int32)
        flows, length = array.shape
        return cls(np.arange(flows + 1, dtype=np.int64) * length, array.ravel())

    @classmethod
    def none(cls) -> Paths:
        """Return the paths of no flow."""
        return cls(np.zeros(1, np.int64), np.zeros(0, np.int32))

    @classmethod
    def concatenate(cls, parts: Sequence[Paths]) -> Paths:
        """Return the flows of all parts, one part after the other."""
        if not parts:
            return cls.none()
        starts = np.cumsum([0] + [len(part.links) for part in parts])
        offsets = [part.offsets[1:] + start for part, start in zip(parts, starts, strict=False)]
        return cls(np.concatenate([np.zeros(1, np.int64), *offsets]), np.concatenate([part.links for part in parts]))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Places:
        """The number of links of each path."""
        return np.diff(self.offsets)

    def take(self, flows: ArrayLike) -> Paths:
        """Return the paths of these flows (indices or a mask), in this order."""
        chosen = np.arange(len(self))[np.asarray(flows)]
        lengths = self.lengths[chosen]
        offsets = np.zeros(len(chosen) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        return Paths(offsets, self.links[spans(self.offsets[chosen], lengths)])


def spans(starts: Places, lengths: Places) -> Places:
    """Return the integers of all the spans `start ... start + length - 1`, one span after the other."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(starts - ends + lengths, lengths)
