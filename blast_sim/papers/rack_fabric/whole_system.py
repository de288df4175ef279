"""Figures 13, 15 and 16: many large trees at once, and a broadcast to all 640 terminals (section 5)."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from blast_sim.base.report import Row
from blast_sim.fabric.scenario import Model
from blast_sim.papers.rack_fabric.models import flow, model
from blast_sim.papers.rack_fabric.panel import Axis, Mark, Panel, PanelCase, Point, mean_throughput

SOURCES, FLOWS_OF_A_SOURCE, TARGETS, POSSIBLE = 6, 10, 20, 40
SOURCE_LOADS = (2.5, 5.0, 10.0, 15.0, 20.0, 25.0, 27.5, 30.0, 33.3)
SYNC, NO_SYNC, SMALL_CAM, LARGE_CAM = "with sync", "without sync", "with a CAM of 8", "with a CAM of 1000"
SOURCES_ONLY = "sync at sources only"
ENDS_OF_SUSPENSIONS = ("count", "timeout", "eviction")
"""Why a suspended VOQ is resumed: others have caught up, 3 µs have passed, or its sync CAM entry is evicted."""
BROADCAST_LOADS = (1.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0)
BROADCAST_SIZES = (512, 1522, 9022)
LEVELS = range(5)
OVERLOADED, OTHERS = "overloaded leaves", "others"
FIVE_FRAMES, SIX_FRAMES = "5 jumbo frames", "6 jumbo frames"
SMALL_POOLS_KB = {FIVE_FRAMES: 48, SIX_FRAMES: 54}
"""Sizes of a surrogate's ingress side for this number of frames; Table 1's 84 KB hold nine."""


def demand(source_gbps: float) -> float:
    """Return the mean demand at destinations, in Gb/s."""
    return source_gbps * SOURCES * TARGETS / POSSIBLE


def many_trees(seed: int, source_gbps: float, *, remote: int = 3, **other: object) -> Model:
    """Return section 5.2's trees: six sources in three leaves, ten flows each, each to 20 of 40 other leaves, drawn.

    A first-level surrogate serves `remote` second-level ones. The paper states neither the size of frames nor their
    arrival process: 1522 bytes and Poisson are assumed.
    """
    draw = random.Random(seed)
    first_target = SOURCES // 2
    flows = []
    for source in range(SOURCES):
        for number in range(FLOWS_OF_A_SOURCE):
            leaves = draw.sample(range(first_target, first_target + POSSIBLE), TARGETS)
            flows.append(
                flow(
                    f"{source}.{number}",
                    (source // 2, source % 2),
                    {"leaves": leaves},
                    rate_gbps=source_gbps / FLOWS_OF_A_SOURCE,
                    tree={"surrogates": {"first": 5, "remote": remote}},
                    process="poisson",
                )
            )
    return model(f"13: {source_gbps} Gb/s", seed, 1.2, flows, warmup_ns=400_000, **other)


def broadcast(seed: int, size: int, gbps: float, **other: object) -> Model:
    """Return a broadcast from one source to all, over racks, triplets, CIEs and leaves (Figure 14)."""
    # A few dozen frames at the least, however slowly they come.
    milliseconds = max(0.3, 30 * size * 8 / gbps / 1e6)
    flows = [flow("b", (0, 0), "all", frame_bytes=size, rate_gbps=gbps, tree="rack")]
    return model(f"15: {size} B at {gbps} Gb/s", seed, milliseconds, flows, warmup_ns=100_000, **other)


_SYNCHRONIZATION = {
    NO_SYNC: {"on": False},
    SYNC: {"on": True},
    SMALL_CAM: {"on": True, "entries": 8},
    LARGE_CAM: {"on": True, "entries": 1000},
    SOURCES_ONLY: {"on": True, "surrogates": False},
}


def _loads(lines: Sequence[str], loads: Sequence[float], seed: int) -> list[PanelCase]:
    return [
        PanelCase(line, load, many_trees(seed, load, sync=_SYNCHRONIZATION[line])) for line in lines for load in loads
    ]


def received_gbps(results: Row) -> float:
    """Return the mean over terminals of what all flows together bring to one, Gb/s."""
    terminals: dict[tuple[int, int], float] = defaultdict(float)
    for one in _destinations(results):
        terminals[one["leaf"], one["port"]] += one["gbps"]
    return sum(terminals.values()) / len(terminals)


def _received(case: PanelCase, results: Row) -> Iterator[Point]:
    yield case.line, case.x, received_gbps(results)


def _suspensions(case: PanelCase, results: Row) -> Iterator[Point]:
    """Yield how many suspensions have ended for each reason."""
    for reason in ENDS_OF_SUSPENSIONS:
        yield reason, case.x, results["counters"][f"resumed_by_{reason}"]


def _delay(case: PanelCase, results: Row) -> Iterator[Point]:
    copies = sum(one["copies"] for one in _destinations(results))
    total = sum(one["copies"] * one["mean_delay_ns"] for one in _destinations(results))
    yield case.line, case.x, total / copies / 1000


def _delay_by_demand(case: PanelCase, results: Row) -> Iterator[Point]:
    """Yield the mean delay (µs) to leaves with a demand above the line rate, and to the other leaves."""
    flows = case.model["flows"]
    drawn = Counter(leaf for one in flows for leaf in one["to"]["leaves"])
    overloaded = {leaf for leaf, times in drawn.items() if times * flows[0]["rate_gbps"] > 100}
    for line, leaves in ((OVERLOADED, overloaded), (OTHERS, set(drawn) - overloaded)):
        own = [one for one in _destinations(results) if one["leaf"] in leaves]
        if own:
            copies = sum(one["copies"] for one in own)
            yield line, case.x, sum(one["copies"] * one["mean_delay_ns"] for one in own) / copies / 1000


def _destinations(results: Row) -> Iterator[Row]:
    for one in results["flows"]:
        yield from one["destinations"]


def _broadcasts(seed: int) -> list[PanelCase]:
    return [
        PanelCase(f"{size} B", load, broadcast(seed, size, load))
        for size in BROADCAST_SIZES
        for load in BROADCAST_LOADS
    ]


def _without_waiting(seed: int) -> list[PanelCase]:
    roomy = {"sync": {"on": False}, "topology": {"spines": 64}}
    return [PanelCase("512 B", load, broadcast(seed, 512, load, **roomy)) for load in (50.0, 99.0)]


def _by_level(case: PanelCase, results: Row) -> Iterator[Point]:
    for level in results["flows"][0]["levels"]:
        yield f"{case.line}, {level['surrogates']} surrogates", case.x, level["mean_delay_ns"] / 1000


def _with_small_pools(seed: int) -> list[PanelCase]:
    return [
        PanelCase(line, load, broadcast(seed, 9022, load, buffers={"ingress_surrogate_lossy_bytes": kilobytes * 1024}))
        for line, kilobytes in SMALL_POOLS_KB.items()
        for load in (75.0, 90.0, 99.0)
    ]


_SOURCE_LOAD = Axis("source_gbps", "load of a source, Gb/s")
_LOAD = Axis("load_gbps", "load of the source, Gb/s")
_RECEIVED = Axis("gbps", "mean throughput at destinations, Gb/s")
_MICROSECONDS = Axis("us", "mean delay, µs")
_BOTH: Callable[[int], list[PanelCase]] = partial(_loads, (SYNC, NO_SYNC), SOURCE_LOADS)

PANELS = (
    Panel(
        "13a",
        "60 trees, each to 100 terminals: throughput",
        _SOURCE_LOAD,
        _RECEIVED,
        _BOTH,
        _received,
        [Mark(83, "83 at 30", (28.5, 31.5)), Mark(76, "76 at 25", (23.5, 26.5))],
    ),
    Panel(
        "13b",
        "60 trees, each to 100 terminals: delay",
        _SOURCE_LOAD,
        _MICROSECONDS,
        _BOTH,
        _delay,
        [Mark(4, "above 4 at 5", (3.5, 6.5)), Mark(14, "14 at 82 %", (27, 33))],
    ),
    Panel(
        "15",
        "Broadcast to 640: throughput",
        _LOAD,
        _RECEIVED,
        _broadcasts,
        mean_throughput,
        [Mark(93, "jumbo frames up to 93", (90, 99))],
    ),
    Panel(
        "16",
        "Broadcast to 640: delay by surrogates passed",
        _LOAD,
        _MICROSECONDS,
        _broadcasts,
        _by_level,
        facets=tuple(f"{size} B" for size in BROADCAST_SIZES),
    ),
)

EXPERIMENTS = (
    Panel(
        "13a-cams",
        "60 trees: synchronization with fewer and more entries, and at sources only",
        _SOURCE_LOAD,
        _RECEIVED,
        partial(_loads, (SMALL_CAM, LARGE_CAM, SOURCES_ONLY), (27.5, 30.0, 33.3)),
        _received,
    ),
    Panel(
        "13a-suspensions",
        "60 trees: causes that end the suspension of a VOQ",
        _SOURCE_LOAD,
        Axis("suspensions", "suspensions"),
        partial(_loads, (SYNC,), (27.5, 30.0, 33.3)),
        _suspensions,
    ),
    Panel(
        "13b-overloaded",
        "60 trees: delay to leaves of which more is asked than a line carries",
        _SOURCE_LOAD,
        _MICROSECONDS,
        partial(_loads, (NO_SYNC,), (30.0,)),
        _delay_by_demand,
    ),
    Panel(
        "16-roomy",
        "Broadcast to 640, nothing to wait for: no sync, 64 spines",
        _LOAD,
        _MICROSECONDS,
        _without_waiting,
        _by_level,
    ),
    Panel(
        "15-small-pools",
        "Broadcast to 640, jumbo frames, surrogates with small pools",
        _LOAD,
        _RECEIVED,
        _with_small_pools,
        mean_throughput,
        [Mark(93, "jumbo frames up to 93")],
    ),
)
