"""All ports of a fabric, each held against its part of a trace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from blast_sim.fabric.trace import Kind
from tests.support.rack_fabric_port.constants import Constants, constants_of
from tests.support.rack_fabric_port.events import Event
from tests.support.rack_fabric_port.leaf import Leaf
from tests.support.rack_fabric_port.port import Port
from tests.support.rack_fabric_port.tables import tables_of

ALL_COPIES_HAD_LEFT = 1
"""Flag of CACHE_EVICTED."""


class Fabric:
    """A model for every port that copies frames, and a cache for every leaf."""

    def __init__(self, scenario: Mapping[str, Any], constants: Constants) -> None:
        self._constants = constants
        self._tables = tables_of(scenario, constants)
        self._leaves: dict[int, Leaf] = {}
        self._ports: dict[int, Port] = {}

    def take(self, event: Event) -> None:
        """The next event of the trace. Raises Disagreement."""
        leaf = self._leaf(event.port)
        leaf.pass_time(event)
        if event.kind == Kind.CACHE_EVICTED and not event.flags & ALL_COPIES_HAD_LEFT:
            leaf.evict(event)
        elif event.kind != Kind.FRAME_OUT:
            self._port(event.port, leaf).take(event)

    def settle(self, event: Event) -> None:
        """All that events up to this last one had to bring about has come."""
        for port in self._ports.values():
            port.settle(event)

    def _leaf(self, port: int) -> Leaf:
        number = port // self._constants.ports
        if number not in self._leaves:
            self._leaves[number] = Leaf(self._constants)
        return self._leaves[number]

    def _port(self, number: int, leaf: Leaf) -> Port:
        if number not in self._ports:
            self._ports[number] = Port(number, self._constants, self._tables, leaf)
        return self._ports[number]


def follow(scenario: Mapping[str, Any], events: Iterable[Event], constants: Constants | None = None) -> None:
    """Hold a trace against the model. Raises Disagreement at the first event that the paper rules out."""
    fabric, event = Fabric(scenario, constants or constants_of(scenario)), None
    for event in events:
        fabric.take(event)
    if event is not None:
        fabric.settle(event)
