"""Simulations for each figure of `blast figures blast`: scenarios with swept keys.

`quick` uses fewer points; the shapes stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from blast_sim.base.report import Row
from blast_sim.experiments.cell import Effort, FlowCell, cells_of
from blast_sim.flow.optics import switches_for
from blast_sim.scenarios.loading import find, load

RECORDED = Effort("recorded")
LOADS, QUICK_LOADS = (0, 1, 3, 8, 20, 40), (0, 3, 40)
SPLITTERS, QUICK_SPLITTERS = (8, 12, 16, 20, 25, 30, 40), (12, 20)
RACKS, QUICK_RACKS = (120, 300, 1000, 3000, 10_000), (120, 300)
SWITCHING_MS, QUICK_SWITCHING_MS = (1.0, 5.0, 14.172, 25.0, 60.0, 200.0), (14.172, 200.0)
MEGABYTES, QUICK_MEGABYTES = (0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000), (0.1, 1, 10, 100, 1000)
SAMPLED, MAX_GROUPS = ("hdfs", "overlay"), 300
"""Methods whose flows within racks exceed the memory of a small machine if there are more groups. No two groups share a
rack, so dropping groups changes the times of the others only by the background traffic.
"""
OTHER_READINGS = (
    ("hdfs", "hdfs.writes", "parallel"),
    ("hdfs", "hdfs.third_replica", "cluster"),
    ("hdfs", "hdfs.reads", "sequential"),
    ("overlay", "overlay.stages", "parallel"),
)
"""Points that the paper leaves open, each alone: method, key of the scenario, and its other value."""

LIGHT_LOAD = 3
PACKET_RUN = {"methods": ["naive", "hdfs", "overlay"], "networks": ["10:1", "non-blocking"]}
NON_BLOCKING = "non-blocking"
BLAST = ("blast", "10:1")
BLAST_RUN = {"methods": ["blast"], "networks": ["10:1"], "policies": ["paper"]}


def figure_four(quick: bool) -> list[FlowCell]:
    """Return the cells of Figure 4 and of other readings; if `quick`, only those of Figure 4 without heavy load."""
    cells = list(cells_of(load(find("fig4")), (0,), RECORDED))
    return [cell for cell in cells if cell.background != "heavy"] if quick else cells + other_readings()


def other_readings() -> list[FlowCell]:
    """Return the cells of the two ratios that the paper states, under each other reading of its text.

    The label `reading` has the key and its value.
    """
    cells: list[FlowCell] = []
    for method, key, value in OTHER_READINGS:
        run = {"methods": [method], "networks": ["non-blocking"], "backgrounds": ["heavy"]}
        labels: Row = {"reading": f"{key} = {value}"}
        cells += cells_of(load(find("fig4"), {"run": [run], key: value}), (0,), RECORDED, labels)
    return cells


def against_load(quick: bool) -> list[FlowCell]:
    """Return the cells of Figure 4 with more loads, each named by the racks per direction to which a server sends."""
    loads = QUICK_LOADS if quick else LOADS
    backgrounds = {str(each_way): each_way for each_way in loads if not quick or each_way < 40}
    runs = [{**run, "backgrounds": list(backgrounds)} for run in (PACKET_RUN, BLAST_RUN)]
    settings = {"background.racks_per_direction": backgrounds, "run": runs}
    return list(cells_of(load(find("fig4"), settings), (0,), RECORDED))


def against_splitters(quick: bool) -> list[FlowCell]:
    """Return the cells of the contended scenario with fewer and more splitters, under three policies."""
    counts = QUICK_SPLITTERS if quick else SPLITTERS
    seeds = (0,) if quick else (0, 1, 2)
    cells: list[FlowCell] = []
    for number in counts:
        settings = {
            "light.splitters": number,
            "light.switch_ports": 1000,
            "run.0.policies": ["paper", "smith", "srpt-lease"],
        }
        cells += cells_of(load(find("contended"), settings), seeds, RECORDED, {"splitters": number})
    return cells


def against_racks(quick: bool) -> list[FlowCell]:
    """Return cells with more and more racks, nine of ten in groups of three, under light load.

    Optical switches have sizes that exist; every group is on one of them.
    """
    cells: list[FlowCell] = []
    for racks in QUICK_RACKS if quick else RACKS:
        switches, ports = switches_for(racks)
        groups = 3 * racks // 10
        for method, network in (("naive", NON_BLOCKING), ("hdfs", NON_BLOCKING), ("overlay", NON_BLOCKING), BLAST):
            sent = min(groups, MAX_GROUPS) if method in SAMPLED else groups
            settings = {
                "network.racks": racks,
                "multicasts.groups": sent,
                "multicasts.pods": switches,
                "light.splitters": racks // 3,
                "light.switches": switches,
                "light.switch_ports": ports,
                "background.racks_per_direction": {"light": LIGHT_LOAD},
                "run": [{"methods": [method], "networks": [network], "backgrounds": ["light"], "policies": ["paper"]}],
            }
            labels: Row = {"racks": racks, "groups": sent, "optical_switches": switches, "switch_ports": ports}
            cells += cells_of(load(find("fig4"), settings), (0,), RECORDED, labels)
    return cells


def against_size(quick: bool) -> list[FlowCell]:
    """Return cells of four groups with 100 kB to 1 GB: Blast with slow and fast optical switches, and other methods."""
    few: Mapping[str, object] = {
        "multicasts.groups": 4,
        "background.racks_per_direction": {"none": 0, "light": LIGHT_LOAD},
    }
    backgrounds = {"backgrounds": ["none", "light"]}
    cells: list[FlowCell] = []
    for size in QUICK_MEGABYTES if quick else MEGABYTES:
        packet = {"methods": ["naive", "overlay", "pipeline"], "networks": ["10:1"], **backgrounds}
        settings = {**few, "multicasts.megabytes": size, "run": [packet]}
        cells += cells_of(load(find("fig4"), settings), (0,), RECORDED, {"megabytes": size})
        for switching in QUICK_SWITCHING_MS if quick else SWITCHING_MS:
            lit = {**settings, "run": [{**BLAST_RUN, **backgrounds}], "light.switching_ms": switching}
            labels: Row = {"megabytes": size, "switching_ms": switching}
            cells += cells_of(load(find("fig4"), lit), (0,), RECORDED, labels)
    return cells


def iterative_jobs(quick: bool) -> list[FlowCell]:
    """Return the cells of the shipped scenario `iterative-jobs`; two iterations per job if `quick`."""
    settings: Mapping[str, object] = {f"jobs.{n}.iterations": 2 for n in range(3)} if quick else {}
    return list(cells_of(load(find("iterative-jobs"), settings), (0,), RECORDED))


def break_even(rows: Sequence[Row]) -> list[Row]:
    """Return the size from which on Blast is faster, for each delay, other method and load.

    `rows` are those against size. `megabytes` is 0 where Blast is faster at all simulated sizes, None where it is
    faster at none.
    """
    others = {(row["method"], row["background"]) for row in rows if row["method"] != "blast"}
    delays = sorted({row["switching_ms"] for row in rows if row["method"] == "blast"})
    found: list[Row] = []
    for delay in delays:
        for method, background in sorted(others):
            lit = {r["megabytes"]: r["seconds"] for r in rows if _is(r, "blast", background, delay)}
            packet = {r["megabytes"]: r["seconds"] for r in rows if _is(r, method, background, None)}
            size = _crossing([(size, lit[size] - packet[size]) for size in sorted(lit)])
            found.append({"switching_ms": delay, "method": method, "background": background, "megabytes": size})
    return found


def _is(row: Row, method: str, background: str, delay: float | None) -> bool:
    return (row["method"], row["background"], row.get("switching_ms")) == (method, background, delay)


def _crossing(points: Sequence[tuple[float, float]]) -> float | None:
    """Return the size from which the difference of times stays below 0, interpolated linearly between points.

    It is 0 if all differences are below 0, and None if the last one is not.
    """
    if points[-1][1] >= 0:
        return None
    for (smaller, above), (larger, below) in reversed(list(pairwise(points))):
        if above >= 0:
            return float(smaller + (larger - smaller) * above / (above - below))
    return 0.0
