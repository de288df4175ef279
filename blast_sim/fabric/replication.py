"""How fast the rack fabric copies from one terminal to all others of so many racks: as its simulator has found it.

The figures are in `replication.toml`, which `benchmarks/rack_fabric_replication.py` writes: `share` of the line rate at
the slowest destination, and how long a frame is on its way to it. A rack has 8 leaves of 5 servers; frames have 1522
bytes and come at the line rate; the lossy class of the paper's trees, and a lossless one.
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
    """`share` of the line rate, and seconds that a frame is on its way, for up to so many racks."""

    racks: int
    share: float
    seconds: float


@cache
def measured(lossless: bool) -> Sequence[Replication]:
    """What was found, by number of racks."""
    rows = tomllib.loads(FILE.read_text())["lossless" if lossless else "lossy"]
    return tuple(Replication(row["racks"], row["share"], row["delay_ns"] * 1e-9) for row in rows)


def replication(racks: int, lossless: bool) -> Replication:
    """What holds for so many racks: the next larger fabric that was measured. Raises ValueError: it has 16."""
    for row in measured(lossless):
        if racks <= row.racks:
            return row
    raise ValueError(f"the rack fabric has {RACKS[-1]} racks of 40 servers, and not {racks}")


def scenario(racks: int, lossless: bool) -> dict[str, object]:
    """What is simulated for a row: a broadcast to all servers of these racks."""
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
    """A row of the file, of what the simulator has found."""
    found = results["flows"][0]["destinations"]
    slowest = min(found, key=lambda one: one["gbps"])
    # A frame more or less at the edges of what is counted is no faster line.
    share = min(1.0, round(slowest["gbps"] / 100.0, 3))
    return {"racks": racks, "share": share, "delay_ns": round(max(one["mean_delay_ns"] for one in found))}
