"""Pools of multicast headers, one for each virtual lane of a port (section 4.1)."""

from __future__ import annotations

from collections import Counter

from tests.support.rack_fabric_port.constants import LANES, Constants


class HeaderPools:
    """A header holds its place until its copy is acknowledged or dropped from the head of its queue."""

    def __init__(self, constants: Constants) -> None:
        self._constants = constants
        self._held: Counter[int] = Counter()

    def held(self, lane: int) -> int:
        return self._held[lane]

    def most(self, number: int) -> int:
        """Headers in the fullest lane of a class."""
        return max(self._held[lane] for lane in range(number * LANES, (number + 1) * LANES))

    def fates(self, lane: int, held: int) -> frozenset[bool]:
        """Whether a header that finds so many may be accepted, or dropped, or either (random early detection)."""
        constants = self._constants
        if constants.lossless(lane):
            return frozenset({True}) if held < constants.lossless_headers else frozenset()
        if held < constants.low:
            return frozenset({True})
        if held >= constants.high:
            return frozenset({False})
        return {0.0: frozenset({True}), 1.0: frozenset({False})}.get(constants.probability, frozenset({True, False}))

    def take(self, lane: int) -> None:
        self._held[lane] += 1

    def free(self, lane: int) -> None:
        self._held[lane] -= 1
