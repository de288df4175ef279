"""Figures 2(c) and 4: the effects of the multicast cache and of the synchronization of VOQs (section 3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from blast_sim.base.report import Row
from blast_sim.papers.rack_fabric.models import LOCAL, REMOTE, SIZES, SOURCE, flow, model
from blast_sim.papers.rack_fabric.panel import Axis, Mark, Panel, PanelCase, Point, mean_throughput

CACHES = (16, 32, 64, 128)
THROUGHPUT = Axis("gbps", "throughput of a subflow, Gb/s")
WITHOUT_CACHE, WITH_CACHE = "without the cache", "with the cache"
NO_DROPS = {"drop": "none"}
"""Section 3 precedes VOQ drops: drops would let lagging copies catch up on their own."""


def _fanout(seed: int) -> Iterator[PanelCase]:
    destinations = [one for pair in zip(LOCAL, REMOTE, strict=True) for one in pair]
    for line, packets in ((WITHOUT_CACHE, 0), (WITH_CACHE, 128)):
        for fanout in range(1, 9):
            flows = [flow("m", SOURCE, tuple(destinations[:fanout]))]
            settings = {"cache": {"packets": packets}, "voq": NO_DROPS, "warmup_ns": 500_000}
            yield PanelCase(line, fanout, model(f"2c: {line}, fanout {fanout}", seed, 1.5, flows, **settings))


def _sizes(synchronized: bool, seed: int) -> Iterator[PanelCase]:
    for size in SIZES:
        for packets in CACHES:
            flows = [flow("m", SOURCE, (*LOCAL, *REMOTE), frame_bytes=size)]
            settings = {
                "cache": {"packets": packets},
                "sync": {"on": synchronized},
                "voq": NO_DROPS,
                "warmup_ns": 1_000_000,
            }
            title = f"4{'b' if synchronized else 'a'}: {size} B, {packets} packets"
            yield PanelCase(f"{size} B", packets, model(title, seed, 3, flows, **settings))


def _occupancy(seed: int) -> Iterator[PanelCase]:
    for line, packets, synchronized in (
        ("cache128", 128, False),
        ("cache128 + sync", 128, True),
        ("cache32", 32, False),
    ):
        flows = [flow("m", SOURCE, (*LOCAL, *REMOTE))]
        settings = {"cache": {"packets": packets}, "sync": {"on": synchronized}, "voq": NO_DROPS, "sample_ns": 50_000}
        yield PanelCase(line, 0, model(f"4c: {line}", seed, 10, flows, **settings))


def _occupied(case: PanelCase, results: Row) -> Iterator[Point]:
    series = results["series"]
    for number, packets in enumerate(series["cache_packets"][0]["packets"]):
        yield case.line, (number + 1) * series["sample_ns"] / 1e6, packets


def _cases_of(synchronized: bool, seed: int) -> Sequence[PanelCase]:
    return list(_sizes(synchronized, seed))


_CACHE_SIZE = Axis("cache_packets", "cache, packets", "log2")

PANELS = (
    Panel(
        "2c",
        "One multicast flow of 99 Gb/s, by fanout",
        Axis("fanout", "copies that the source sends"),
        THROUGHPUT,
        lambda seed: list(_fanout(seed)),
        mean_throughput,
        [Mark(99.0, "with the cache 100G for any fanout")],
    ),
    Panel(
        "4a",
        "Without synchronization of VOQs: 4 local and 4 remote copies",
        _CACHE_SIZE,
        THROUGHPUT,
        partial(_cases_of, False),
        mean_throughput,
        [Mark(30.0, "below 30 with less than 64", (16, 63))],
    ),
    Panel(
        "4b",
        "With synchronization of VOQs: 4 local and 4 remote copies",
        _CACHE_SIZE,
        THROUGHPUT,
        partial(_cases_of, True),
        mean_throughput,
        [Mark(99.0, "full with 16, but for jumbo frames")],
    ),
    Panel(
        "4c",
        "Cache occupancy: 1522 B, 4 local and 4 remote copies",
        Axis("ms", "time, ms"),
        Axis("packets", "packets in the cache"),
        lambda seed: list(_occupancy(seed)),
        _occupied,
        [Mark(40, "fewer than 40 with sync"), Mark(20, "cache32: around 20")],
    ),
)
