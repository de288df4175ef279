"""A congestion point at a payload pool (section 4.2 and IEEE 802.1Qau)."""

from __future__ import annotations

from tests.support.rack_fabric_port.constants import Constants

STEPS = 64
"""Feedback has 6 bits, whose upper three choose among eight sampling intervals."""


class CongestionPoint:
    """Samples arrivals, every so many bytes and more often the worse the congestion is."""

    def __init__(self, constants: Constants) -> None:
        self._constants = constants
        self._before = 0
        self._until_sample = float(constants.sample_bytes)

    def arrived(self, size: int, packets: int) -> int:
        """A frame of so many bytes has come, and the pool holds so many packets: feedback, 0 for none."""
        self._until_sample -= size
        if self._until_sample > 0:
            return 0
        occupancy = packets * self._constants.packet_bytes
        feedback = self._feedback(occupancy)
        self._before = occupancy
        self._until_sample += self._constants.sample_bytes / (1 + feedback // 8)
        return feedback

    def _feedback(self, occupancy: int) -> int:
        constants = self._constants
        offset = occupancy - constants.equilibrium_bytes
        feedback = offset + constants.weight * (occupancy - self._before)
        most = constants.equilibrium_bytes * (2 * constants.weight + 1)
        return max(0, min(STEPS - 1, int(feedback * STEPS / most)))
