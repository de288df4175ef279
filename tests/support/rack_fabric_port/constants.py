"""What a port is built with: Table 1 of the paper, and whatever a scenario says instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

K = 1024
LANES = 5
"""Virtual lanes of a class: the one that sources and destinations use, and one for each level of surrogates."""


@dataclass(frozen=True, slots=True)
class Constants:
    """Sizes in packets unless the name says otherwise. Table 1; sections 3.1, 4.1 and 4.2."""

    ports: int
    surrogate: int
    slot_ps: int
    headers_per_slot: int
    packet_bytes: int
    terminal_lossy: int
    terminal_lossless: int
    surrogate_lossy: int
    surrogate_lossless: int
    cache: int
    reserve: int
    sync: bool
    entries: int
    block: int
    resume: int
    timeout_ps: int
    high: int
    low: int
    probability: float
    lossless_headers: int
    shuffle: bool
    drop: str
    terminal_voq: int
    surrogate_voq: int
    stop: int
    go: int
    qcn_at_inputs: bool
    largest_is_told: bool
    equilibrium_bytes: int
    weight: float
    sample_bytes: int
    inputs: int | None
    """Of the crossbar, one for each port; none: local copies have links of their own."""
    lossless_classes: frozenset[int]

    def lossless(self, lane: int) -> bool:
        return lane // LANES in self.lossless_classes

    def is_surrogate(self, port: int) -> bool:
        return port % self.ports == self.surrogate

    def voq_threshold(self, port: int, lane: int) -> int | None:
        """From how many packets on a queue of this port drops copies; none: it never does."""
        if self.drop == "none" or self.lossless(lane):
            return None
        return self.surrogate_voq if self.is_surrogate(port) else self.terminal_voq


def constants_of(scenario: Mapping[str, Any]) -> Constants:
    """The constants of a scenario."""

    def said(group: str, word: str, otherwise: Any) -> Any:
        return scenario.get(group, {}).get(word, otherwise)

    packet_bytes: int = said("timing", "packet_bytes", 256)

    def packets(group: str, word: str, otherwise: int) -> int:
        return int(said(group, word, otherwise)) // packet_bytes

    ethernet = said("topology", "ethernet_ports", 5)
    ports: int = ethernet + 1 + said("topology", "pcie_ports", 2)
    cycles = said("timing", "packet_cycles", 8)
    cache = said("cache", "packets", 128)
    return Constants(
        ports=ports,
        surrogate=ethernet,
        slot_ps=said("timing", "clock_ps", 2203) * cycles,
        headers_per_slot=cycles,
        packet_bytes=packet_bytes,
        terminal_lossy=packets("buffers", "ingress_terminal_lossy_bytes", 740 * 256),
        terminal_lossless=packets("buffers", "ingress_terminal_lossless_bytes", 227 * K),
        surrogate_lossy=packets("buffers", "ingress_surrogate_lossy_bytes", 84 * K),
        surrogate_lossless=packets("buffers", "ingress_surrogate_lossless_bytes", 32 * K),
        cache=cache,
        reserve=min(said("cache", "reserve", 10), cache // 2),
        sync=said("sync", "on", True),
        entries=said("sync", "entries", 24),
        block=said("sync", "block_packets", 18),
        resume=said("sync", "resume_packets", 12),
        timeout_ps=said("sync", "timeout_ns", 3000) * 1000,
        high=said("headers", "high", 500),
        low=said("headers", "low", 470),
        probability=said("headers", "probability", 0.5),
        lossless_headers=said("headers", "lossless", 291),
        shuffle=said("headers", "shuffle", False),
        drop=said("voq", "drop", "head"),
        terminal_voq=packets("voq", "terminal_bytes", 60 * K),
        surrogate_voq=packets("voq", "surrogate_bytes", 50 * K),
        stop=packets("pause", "stop_bytes", 160 * K),
        go=packets("pause", "go_bytes", 90 * K),
        qcn_at_inputs=said("qcn", "points", "none") == "inputs",
        largest_is_told=said("qcn", "marking", "occupancy") == "occupancy",
        equilibrium_bytes=said("qcn", "equilibrium_ingress_bytes", 90 * K),
        weight=said("qcn", "weight", 2.0),
        sample_bytes=said("qcn", "sample_bytes", 150 * K),
        inputs=None if said("crossbar", "local_links", False) else ports,
        lossless_classes=frozenset(
            number for number, one in enumerate(scenario.get("classes", [])) if one.get("lossless", False)
        ),
    )
