"""Payload pools of a port (sections 2.1, 2.2 and 4.1)."""

from __future__ import annotations

from collections import Counter, defaultdict

from tests.support.rack_fabric_port.constants import Constants


class PayloadPools:
    """Buffer units that frames hold until all of their copies have been acknowledged.

    Every virtual lane has a pool; those of lossy lanes share one threshold.
    """

    def __init__(self, constants: Constants, surrogate: bool) -> None:
        self._constants = constants
        self._surrogate = surrogate
        self._held: defaultdict[int, Counter[int]] = defaultdict(Counter)

    def fits(self, lane: int, packets: int) -> bool:
        """Whether a frame leaves the pool within its threshold."""
        constants = self._constants
        if constants.lossless(lane):
            threshold = constants.surrogate_lossless if self._surrogate else constants.terminal_lossless
            return self.held(lane) + packets <= threshold
        shared = sum(self.held(other) for other in self._held if not constants.lossless(other))
        threshold = constants.surrogate_lossy if self._surrogate else constants.terminal_lossy
        return shared + packets <= threshold

    def held(self, lane: int) -> int:
        return self._held[lane].total()

    def largest(self, lane: int) -> frozenset[int]:
        """The flows that hold most."""
        most = max(self._held[lane].values())
        return frozenset(flow for flow, held in self._held[lane].items() if held == most)

    def take(self, lane: int, flow: int, packets: int) -> None:
        self._held[lane][flow] += packets

    def free(self, lane: int, flow: int, packets: int) -> None:
        self._held[lane][flow] -= packets
