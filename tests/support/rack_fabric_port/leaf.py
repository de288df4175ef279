"""What the ports of a leaf share: the multicast cache and the inputs of the crossbar (section 3, Figure 2)."""

from __future__ import annotations

from collections import Counter

from blast_sim.fabric.trace import OVER_PAYLOAD_LINE
from tests.support.rack_fabric_port.cache import Cache
from tests.support.rack_fabric_port.constants import Constants
from tests.support.rack_fabric_port.events import Event, demand


class Leaf:
    """Slots of a packet's time at a crossbar input, and what may leave in one."""

    def __init__(self, constants: Constants) -> None:
        self.cache = Cache(constants)
        self._constants = constants
        self._time = -1
        self._headers: Counter[int] = Counter()
        self._payloads: set[int] = set()
        self._queues: set[int] = set()

    def pass_time(self, event: Event) -> None:
        """The slot is over if the event comes later: who had to be evicted has been."""
        if event.time > self._time:
            demand(self.cache.victim() is None, event, f"{self.cache.victim()} is not evicted before")

    def send(self, event: Event) -> None:
        """A packet leaves a port."""
        if event.time != self._time:
            self._begin_slot(event)
        demand(event.voq not in self._queues, event, "a queue sends one packet in a slot")
        self._queues.add(event.voq)
        self._headers[event.port] += 1
        demand(self._headers[event.port] <= self._constants.headers_per_slot, event, "a port has one header in a cycle")
        inputs = self._constants.inputs
        demand(inputs is None or self._headers.total() <= inputs, event, "an input takes one packet in a slot")
        if event.flags & OVER_PAYLOAD_LINE:
            demand(event.port not in self._payloads, event, "a port sends one payload in a slot")
            self._payloads.add(event.port)

    def evict(self, event: Event) -> None:
        """A line leaves the cache before its last copy."""
        line = (event.frame, event.value)
        victim = self.cache.victim()
        demand(event.time == self._time and line == victim, event, f"the line to be evicted is {victim}")
        self.cache.drop(line)

    def _begin_slot(self, event: Event) -> None:
        demand(event.time % self._constants.slot_ps == 0, event, "a slot is a packet's time")
        self._time = event.time
        self._headers.clear()
        self._payloads.clear()
        self._queues.clear()
        self.cache.begin_slot(event.time)
