"""The scenarios of the Kascade paper (section IV) on a bed, and their rows."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from benchmarks.transfers.bed.bed import SENDER, Bed, Plan, apart
from benchmarks.transfers.bed.measured import Measured
from benchmarks.transfers.bed.shape import UNSHAPED, Shape
from benchmarks.transfers.bed.tools.blast import BlastSend
from benchmarks.transfers.bed.tools.peers import NaiveByClush, OpenMpi, Served, TakTukChain, TakTukTree, UdpcastByClush

Row = dict[str, Any]
HOSTS_PER_RACK = 10
SHAPE, LONG_SHAPE = Shape(16.0), Shape(400.0)
UPLINKS = Shape(64.0)
"""The link of a rack to the core: four times that of a host."""

OURS = BlastSend.name
COMMANDS: dict[str, type[Served]] = {
    tool.name: tool for tool in (BlastSend, UdpcastByClush, TakTukChain, TakTukTree, OpenMpi, NaiveByClush)
}
"""The tools, each one command that also starts its receivers."""


def in_order(receivers: int, _seed: int) -> list[int]:
    """Return the receivers rack by rack, which is the natural order of their names."""
    return list(range(1, receivers + 1))


def in_random_order(receivers: int, seed: int) -> list[int]:
    """Return the receivers in an order that depends on the seed, and not on the tool."""
    return random.Random(f"{receivers} {seed}").sample(range(1, receivers + 1), receivers)


@dataclass(frozen=True)
class Scenario:
    """A section of the paper: the plan for a number of receivers, and their order in the run of a number."""

    name: str
    section: str
    receivers: tuple[int, ...]
    megabytes: int
    plan: Callable[[int], Plan]
    order: Callable[[int, int], Sequence[int]] = in_order
    unable: Mapping[str, str] = field(default_factory=dict)
    """Tools that cannot run here, with the reasons."""
    to_disk: bool = False
    one_way_ms: float = 0.0
    """Delay between any two hosts but the sender and the first receiver, which are at one site."""

    @property
    def rate_mbps(self) -> float | None:
        """The rate of the link of a host."""
        return self.plan(self.receivers[0]).shape.rate_mbps

    def distances(self, bed: Bed) -> AbstractContextManager[None]:
        """Add `one_way_ms` to a bed."""
        pairs = [pair for pair in combinations(bed.plan.hosts, 2) if pair != (SENDER, 1)]
        return apart(bed, pairs, self.one_way_ms) if self.one_way_ms and pairs else nullcontext()


def racks(receivers: int) -> Plan:
    """Return a plan with racks of `HOSTS_PER_RACK`, the sender in the first."""
    hosts = range(receivers + 1)
    grouped = tuple(tuple(hosts[start : start + HOSTS_PER_RACK]) for start in range(0, len(hosts), HOSTS_PER_RACK))
    return Plan(receivers, SHAPE, grouped, UPLINKS, light=False)


def one_network(shape: Shape) -> Callable[[int], Plan]:
    """Return plans with all hosts on one network."""
    return lambda receivers: Plan(receivers, shape, light=False)


_SCALE = (5, 10, 25, 50, 75, 100)
_ROUTED = {UdpcastByClush.name: "its multicast does not pass a router by itself; the paper leaves it out, too"}
SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("ordered", "IV-A", _SCALE, 20, racks),
        Scenario("fast", "IV-B", (1, 2, 4, 7, 10, 14), 500, one_network(UNSHAPED)),
        Scenario("random", "IV-C", _SCALE, 20, racks, in_random_order),
        Scenario("disk", "IV-D", _SCALE, 20, racks, to_disk=True),
        Scenario("sites", "IV-E", (1, 2, 3, 4, 5, 6), 200, one_network(LONG_SHAPE), unable=_ROUTED, one_way_ms=8.0),
        Scenario("small", "IV-F", _SCALE, 50, one_network(UNSHAPED)),
    )
}


def row_of(scenario: Scenario, receivers: int, tool: str, settings: Row, runs: Iterable[Measured]) -> Row:
    """Return the row of these runs; `settings` are `bytes`, `limit_seconds` and `repeats`."""
    runs = list(runs)
    whole = [run for run in runs if not run.failure]
    carrying = statistics.mean(run.seconds - run.start_seconds for run in whole) if whole else 0.0
    link = scenario.rate_mbps
    return {
        "scenario": scenario.name,
        "section": scenario.section,
        "tool": tool,
        "title": COMMANDS[tool].title,
        "receivers": receivers,
        "rate_mbps": link,
        "link_share": settings["bytes"] * 8e-6 / carrying / link if carrying and link else None,
        **settings,
        "seconds": [round(run.seconds, 4) for run in whole],
        "start_seconds": [round(run.start_seconds, 4) for run in whole],
        "processor_seconds": [round(run.processor_seconds, 4) for run in whole if run.processor_seconds is not None],
        "others_share": [round(run.others_share, 3) for run in whole if run.others_share is not None],
        "failures": [run.failure for run in runs if run.failure and not run.late],
        "late": sum(run.late for run in runs),
        "left_out": "",
    }


def is_given_up(runs: Sequence[Measured]) -> bool:
    """Return whether more runs are pointless: one was late, or all have failed."""
    return any(run.late for run in runs) or (len(runs) > 1 and all(run.failure for run in runs))


def too_slow(rows: Iterable[Row], scenario: str, tool: str, receivers: int) -> str:
    """Return the reason why a tool does not run: it was late with fewer receivers. Empty if it was not."""
    late = [row for row in rows if row["late"] and (row["scenario"], row["tool"]) == (scenario, tool)]
    fewer = [row for row in late if row["receivers"] < receivers]
    if not fewer:
        return ""
    first = min(fewer, key=lambda row: row["receivers"])
    return f"not done in {first['limit_seconds']:g} s with {first['receivers']} receivers already"


def line(row: Row) -> str:
    """Return a line of a table."""
    start = f"{row['scenario']:<8}{row['receivers']:>4} receivers  {row['title']:<28}"
    failed = f"   {len(row['failures'])} failed: {row['failures'][-1]}" if row["failures"] else ""
    if row["left_out"]:
        return f"{start}left out: {row['left_out']}"
    if row["late"]:
        return f"{start}not done in {row['limit_seconds']:g} s{failed}"
    if not row["seconds"]:
        return f"{start}{'-':>8}{failed}"
    starting = statistics.mean(row["start_seconds"])
    carrying = statistics.mean(row["seconds"]) - starting
    share = f"{row['link_share']:>8.3f} of the link" if row["link_share"] else ""
    rate = f"{row['bytes'] / 1e6 / carrying:>9.2f} MB/s"
    return f"{start}{starting:>8.2f} s start-up +{carrying:>8.2f} s{rate}{share}{failed}"
