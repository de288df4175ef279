"""The constants (Table 1 of the paper) and the multicast tables of a port, from a scenario."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

K = 1024
LANES = 5
"""Virtual lanes of a class: the one that sources and destinations use, and one for each level of surrogates."""

Scenario = Mapping[str, Any]


class Constants(SimpleNamespace):
    """Sizes in packets unless the name has another unit. Table 1; sections 3.1, 4.1 and 4.2."""

    def lossless(self, lane: int) -> bool:
        return lane // LANES in self.lossless_classes

    def is_surrogate(self, port: int) -> bool:
        return port % self.ports == self.surrogate

    def synchronizes(self, port: int) -> bool:
        """Return whether a port has a sync CAM: surrogates act like other ports (2.2), unless the scenario differs."""
        return bool(self.sync and (self.surrogates_synchronize or not self.is_surrogate(port)))

    def voq_threshold(self, port: int, lane: int) -> int | None:
        """Return the packets from which a queue of this port drops copies; none if it never does."""
        if self.drop == "none" or self.lossless(lane):
            return None
        return self.surrogate_voq if self.is_surrogate(port) else self.terminal_voq


def constants_of(scenario: Scenario) -> Constants:
    """Return the constants of a scenario: those of Table 1, unless it sets others."""

    def value(group: str, word: str, default: Any) -> Any:
        return scenario.get(group, {}).get(word, default)

    packet_bytes: int = value("timing", "packet_bytes", 256)

    def packets(group: str, word: str, default: int) -> int:
        return int(value(group, word, default)) // packet_bytes

    ethernet = value("topology", "ethernet_ports", 5)
    ports: int = ethernet + 1 + value("topology", "pcie_ports", 2)
    cycles = value("timing", "packet_cycles", 8)
    cache = value("cache", "packets", 128)
    return Constants(
        ports=ports,
        surrogate=ethernet,
        slot_ps=value("timing", "clock_ps", 2203) * cycles,
        headers_per_slot=cycles,
        packet_bytes=packet_bytes,
        terminal_lossy=packets("buffers", "ingress_terminal_lossy_bytes", 740 * 256),
        terminal_lossless=packets("buffers", "ingress_terminal_lossless_bytes", 227 * K),
        surrogate_lossy=packets("buffers", "ingress_surrogate_lossy_bytes", 84 * K),
        surrogate_lossless=packets("buffers", "ingress_surrogate_lossless_bytes", 32 * K),
        cache=cache,
        reserve=min(value("cache", "reserve", 10), cache // 2),
        sync=value("sync", "on", True),
        surrogates_synchronize=value("sync", "surrogates", True),
        entries=value("sync", "entries", 24),
        block=value("sync", "block_packets", 18),
        resume=value("sync", "resume_packets", 12),
        timeout_ps=value("sync", "timeout_ns", 3000) * 1000,
        high=value("headers", "high", 500),
        low=value("headers", "low", 470),
        probability=value("headers", "probability", 0.5),
        lossless_headers=value("headers", "lossless", 291),
        shuffle=value("headers", "shuffle", False),
        drop=value("voq", "drop", "head"),
        terminal_voq=packets("voq", "terminal_bytes", 60 * K),
        surrogate_voq=packets("voq", "surrogate_bytes", 50 * K),
        stop=packets("pause", "stop_bytes", 160 * K),
        go=packets("pause", "go_bytes", 90 * K),
        qcn_at_inputs=value("qcn", "points", "none") == "inputs",
        marks_by_occupancy=value("qcn", "marking", "occupancy") == "occupancy",
        equilibrium_bytes=value("qcn", "equilibrium_ingress_bytes", 90 * K),
        weight=value("qcn", "weight", 2.0),
        sample_bytes=value("qcn", "sample_bytes", 150 * K),
        # One crossbar input for each port; none where local copies have links of their own.
        inputs=None if value("crossbar", "local_links", False) else ports,
        lossless_classes={number for number, one in enumerate(scenario.get("classes", [])) if one.get("lossless")},
    )


class Copy(NamedTuple):
    """The port to which a copy goes, and the virtual lane of its header."""

    to: int
    lane: int


class Entry(NamedTuple):
    """A port's handling of a flow's frames; without multicast, each frame has one of the copies."""

    lane: int
    copies: tuple[Copy, ...]
    multicast: bool
    frame_bytes: int


Tables = dict[tuple[int, int], Entry]
"""By flow and port."""


def tables_of(scenario: Scenario, constants: Constants) -> Tables:
    """Return the multicast tables of all ports (sections 2.2 and 5)."""
    tables: Tables = {}
    for number, flow in enumerate(scenario["flows"]):
        multicast = flow.get("spread", "multicast") == "multicast"
        for port, lane, copies in _nodes(flow, constants.ports, constants.surrogate):
            tables[number, port] = Entry(lane, tuple(copies), multicast, flow["frame_bytes"])
    return tables


def _nodes(flow: Scenario, ports: int, surrogate: int) -> Iterator[tuple[int, int, list[Copy]]]:
    """Yield port, lane and copies: the source serves `first` leaves, every surrogate `remote` more, level by level."""
    base = flow.get("class", 0) * LANES
    source, *others = [leaf * ports + port for leaf, port in (flow["source"], *flow["to"])]
    destinations = [port for port in others if port != source]
    if flow.get("tree", "direct") == "direct":
        yield source, base, [Copy(to, base) for to in sorted(destinations)]
        return
    tree, home = flow["tree"]["surrogates"], source // ports
    ahead = [leaf for leaf in dict.fromkeys(to // ports for to in destinations) if leaf != home]
    reached = [(home, source, 0)]
    for leaf, port, level in reached:
        limit = tree["remote"] if level else tree["first"]
        served, ahead = ahead[:limit], ahead[limit:]
        copies = [Copy(to, base) for to in destinations if to // ports == leaf]
        copies += [Copy(one * ports + surrogate, base + level + 1) for one in served]
        yield port, base + level, copies
        reached += [(one, one * ports + surrogate, level + 1) for one in served]
