"""Replication speed of the rack fabric from one terminal to all others, as measured in its simulator.

`benchmarks/simulators/rack_fabric_replication.py` writes the figures in `replication.toml`: `share` of the line rate at
the slowest destination, and the delay of a frame to it. A rack has 8 leaves of 5 servers; frames have 1522 bytes and
arrive at the line rate; the classes are the lossy one of the paper's trees, and a lossless one.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from blast_sim.base.report import Row

LEAVES_PER_RACK = 8
RACKS = (1, 2, 4, 8, 16)
"""The whole of the paper's fabric is 16 such racks."""

FILE = Path(__file__).with_name("replication.toml")


@dataclass(frozen=True, slots=True)
class Replication:
    """The `share` of the line rate, and the delay of a frame in seconds, for up to `racks` racks."""

    racks: int
    share: float
    seconds: float


@cache
def measured(lossless: bool) -> Sequence[Replication]:
    """Return the measurements, by number of racks."""
    rows = tomllib.loads(FILE.read_text())["lossless" if lossless else "lossy"]
    return tuple(Replication(row["racks"], row["share"], row["delay_ns"] * 1e-9) for row in rows)


def replication(racks: int, lossless: bool) -> Replication:
    """Return the values of the next larger measured fabric. Raises ValueError above its maximum of 16 racks."""
    for row in measured(lossless):
        if racks <= row.racks:
            return row
    raise ValueError(f"the rack fabric has {RACKS[-1]} racks of 40 servers, and not {racks}")


def scenario(racks: int, lossless: bool) -> dict[str, object]:
    """Return the simulated scenario of a row: a broadcast to all servers of these racks."""
    flow = {
        "name": "broadcast",
        "source": [0, 0],
        "to": "all",
        "tree": {"surrogates": {"first": 4, "remote": 3}},
        "frame_bytes": 1522,
        "rate_gbps": 100.0,
    }
    return {
        "duration_ns": 600_000,
        "warmup_ns": 200_000,
        "topology": {"leaves": LEAVES_PER_RACK * racks},
        "classes": [{"lossless": lossless}],
        "flows": [flow],
    }


def row_of(racks: int, results: Row) -> dict[str, float]:
    """Return a row of the file from the simulator's results."""
    found = results["flows"][0]["destinations"]
    slowest = min(found, key=lambda one: one["gbps"])
    # A frame more or less at the edges of what is counted is no faster line.
    share = min(1.0, round(slowest["gbps"] / 100.0, 3))
    return {"racks": racks, "share": share, "delay_ns": round(max(one["mean_delay_ns"] for one in found))}
