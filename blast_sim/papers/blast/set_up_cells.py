"""The set-up time from which IP multicast is slower than Blast: simulations, and the break-even points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from blast_sim.base.report import Row
from blast_sim.experiments.cell import Effort, FlowCell, cells_of
from blast_sim.flow.optics import WITHOUT_OPTICAL_SWITCH_SECONDS
from blast_sim.scenarios.loading import find, load

LINE_GBPS = 10.0
"""The rate of a server of the paper."""
DEFAULT_MS = 1000 * WITHOUT_OPTICAL_SWITCH_SECONDS
SET_UPS_MS = (0.0, 1.0, 3.0, 10.0, DEFAULT_MS, 30.0, 60.0, 100.0, 300.0, 1000.0, 10_000.0, 100_000.0)
QUICK_SET_UPS_MS = (0.0, 1.0, 30.0, 1000.0, 100_000.0)
RATES_GBPS = (10.0, 9.9, 9.8, 9.6, 9.3, 9.0, 8.5, 8.0, 7.5, 7.0, 6.5, 6.0, 5.5, 5.0)
QUICK_RATES_GBPS = (10.0, 9.0, 5.0)
MEGABYTES, QUICK_MEGABYTES = (30, 100, 300, 1000), (30, 300)


@dataclass(frozen=True, slots=True)
class Equal:
    """`set_up_ms` at which IP multicast that transmits at `rate_gbps` takes as long as Blast.

    At any longer one Blast is faster; where it is negative, Blast is without any.
    """

    megabytes: float
    rate_gbps: float
    set_up_ms: float


def against_set_up(quick: bool) -> list[FlowCell]:
    """Return cells of Figure 4's groups without background traffic.

    They compare Blast with IP multicast at the line's rate by set-up time, and without set-up by rate.
    """
    cells: list[FlowCell] = []
    for size in QUICK_MEGABYTES if quick else MEGABYTES:
        cells += _cells("blast", size, {})
        for set_up in QUICK_SET_UPS_MS if quick else SET_UPS_MS:
            cells += _cells("ip-multicast", size, {"set_up_ms": set_up, "rate_gbps": LINE_GBPS})
        for rate in QUICK_RATES_GBPS if quick else RATES_GBPS:
            if rate != LINE_GBPS:
                cells += _cells("ip-multicast", size, {"set_up_ms": 0.0, "rate_gbps": rate})
    return cells


def _cells(method: str, megabytes: float, packet: Row) -> Iterator[FlowCell]:
    run = {"methods": [method], "networks": ["10:1"], "backgrounds": ["none"], "policies": ["paper"]}
    settings = {"multicasts.megabytes": megabytes, "run": [run], "packet_multicast": packet}
    return cells_of(load(find("fig4"), settings), (0,), Effort("recorded"), {"megabytes": megabytes, **packet})


def equals(rows: Sequence[Row]) -> list[Equal]:
    """Return the set-up time at which IP multicast takes as long as Blast, for each size and rate.

    A set-up time adds to the duration of the transfer without one.
    """
    lit = {row["megabytes"]: row["seconds"] for row in rows if row["method"] == "blast"}
    bare = [row for row in rows if row["method"] == "ip-multicast" and row["set_up_ms"] == 0.0]
    return [
        Equal(row["megabytes"], row["rate_gbps"], 1000 * (lit[row["megabytes"]] - row["seconds"]))
        for row in sorted(bare, key=lambda row: (row["megabytes"], row["rate_gbps"]))
    ]
