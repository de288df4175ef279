"""The multicast tables of ports: which copies a port makes of the frames of a flow (sections 2.2 and 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.rack_fabric_port.constants import LANES, Constants


@dataclass(frozen=True, slots=True)
class Copy:
    """Where a copy goes, and the virtual lane of its header."""

    to: int
    lane: int


@dataclass(frozen=True, slots=True)
class Entry:
    """What a port does with a flow's frames; of a flow that is not multicast, each frame has one of the copies."""

    lane: int
    copies: tuple[Copy, ...]
    multicast: bool
    frame_bytes: int


Tables = dict[tuple[int, int], Entry]
"""By flow and port."""


def tables_of(scenario: Mapping[str, Any], constants: Constants) -> Tables:
    """The tables of all ports."""
    tables: Tables = {}
    for number, flow in enumerate(scenario["flows"]):
        for port, lane, copies in _nodes(flow, scenario["topology"]["leaves"], constants):
            multicast = flow.get("spread", "multicast") == "multicast"
            tables[number, port] = Entry(lane, tuple(copies), multicast, flow["frame_bytes"])
    return tables


Node = tuple[int, int, list[Copy]]


def _nodes(flow: Mapping[str, Any], leaves: int, constants: Constants) -> list[Node]:
    ports, base = constants.ports, flow.get("class", 0) * LANES
    source_leaf, source_port = flow["source"]
    source = source_leaf * ports + source_port
    destinations = [port for port in _destinations(flow["to"], leaves, constants) if port != source]
    tree = flow.get("tree", "direct")
    if tree == "direct":
        return [(source, base, [Copy(to, base) for to in sorted(destinations)])]
    return _spread_out(source, destinations, base, tree["surrogates"], constants)


def _destinations(to: Any, leaves: int, constants: Constants) -> list[int]:
    if to == "all":
        to = [(leaf, port) for leaf in range(leaves) for port in range(constants.surrogate)]
    return [leaf * constants.ports + port for leaf, port in to]


def _spread_out(
    source: int, destinations: list[int], base: int, tree: Mapping[str, int], constants: Constants
) -> list[Node]:
    """The source serves `first` leaves and every surrogate `remote` more, level by level."""
    home = source // constants.ports
    others = list(dict.fromkeys(to // constants.ports for to in destinations))
    ahead = [leaf for leaf in others if leaf != home]
    reached = [(home, source, 0)]
    nodes: list[Node] = []
    for leaf, port, level in reached:
        most = tree["remote"] if level else tree["first"]
        served, ahead = ahead[:most], ahead[most:]
        surrogates = [one * constants.ports + constants.surrogate for one in served]
        copies = [Copy(to, base) for to in destinations if to // constants.ports == leaf]
        copies += [Copy(to, base + level + 1) for to in surrogates]
        nodes.append((port, base + level, copies))
        reached += [(one, to, level + 1) for one, to in zip(served, surrogates, strict=True)]
    return nodes
