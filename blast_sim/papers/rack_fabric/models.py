"""Common parts of the paper's experiments, as scenarios of the simulator."""

from __future__ import annotations

from collections.abc import Sequence

from blast_sim.fabric.scenario import Model

Terminal = Sequence[int]

LINE_GBPS = 99.0
"""Rate that a source of the paper offers to its line of 100 Gb/s."""
FRAME_BYTES = 1522
"""The largest Ethernet frame with a VLAN tag, as in the paper."""
SIZES = (512, 1022, 1522, 9022)
SOURCE = (0, 0)
LOCAL = ((0, 1), (0, 2), (0, 3), (0, 4))
REMOTE = ((1, 0), (2, 0), (3, 0), (4, 0))

MILLISECOND = 1_000_000
"""In nanoseconds."""


def flow(name: str, source: Terminal, to: object, **other: object) -> Model:
    """Return a flow at the rate and with the frames of most experiments, with changes in `other`."""
    return {
        "name": name,
        "source": list(source),
        "to": [list(one) for one in to] if isinstance(to, tuple) else to,
        "frame_bytes": FRAME_BYTES,
        "rate_gbps": LINE_GBPS,
        **other,
    }


def model(title: str, seed: int, milliseconds: float, flows: Sequence[Model], **other: object) -> Model:
    """Return a scenario of the leaves that the flows name, or of all leaves if a flow goes to all."""
    found: Model = {
        "name": title,
        "seed": seed,
        "duration_ns": round(milliseconds * MILLISECOND),
        "flows": list(flows),
        **other,
    }
    if all(one["to"] != "all" for one in flows):
        found["topology"] = {"leaves": 1 + max(leaf for one in flows for leaf in _leaves(one))}
    return found


def _leaves(one: Model) -> list[int]:
    to = one["to"]
    named = to["leaves"] if isinstance(to, dict) else [leaf for leaf, _ in to]
    return [one["source"][0], *named]
