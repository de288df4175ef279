"""PAUSE of lossless classes at a terminal (section 4.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from blast_sim.fabric.trace import Kind
from tests.support.rack_fabric_port.constants import Constants
from tests.support.rack_fabric_port.tables import Entry

ADAPTER_NS = 50.0
LINE_BYTES_A_NS = 12.5


def headers_ahead(flows: Sequence[Entry]) -> int:
    """Headers that may come before a host has stopped: those of two frames, and of what the line brings meanwhile.

    The paper says nothing of it: this is the simulator's own.
    """
    copies = [(len(flow.copies) if flow.multicast else 1, flow.frame_bytes) for flow in flows]
    most = max((number for number, _ in copies), default=0)
    return 2 * most + math.ceil(max((ADAPTER_NS * n * LINE_BYTES_A_NS / size for n, size in copies), default=0.0))


class Pause:
    """Which classes a port's host has been told to stop; `flows` are those that begin here, by class."""

    def __init__(self, constants: Constants, flows: Mapping[int, Sequence[Entry]]) -> None:
        self._constants = constants
        self._ahead = {number: headers_ahead(own) for number, own in flows.items()}
        self._stopped: set[int] = set()

    def tell(self, number: int, packets: int, headers: int) -> Kind | None:
        """What a host is told when a class holds so many packets, and the fullest of its lanes so many headers."""
        constants, ahead = self._constants, self._ahead[number]
        stop = constants.lossless_headers - ahead
        if number not in self._stopped and (packets > constants.stop or headers > stop):
            self._stopped.add(number)
            return Kind.PAUSE
        if number in self._stopped and packets < constants.go and headers <= stop - min(ahead, stop // 2):
            self._stopped.discard(number)
            return Kind.GO
        return None
