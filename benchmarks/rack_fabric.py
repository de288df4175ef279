"""Claims on the simulator of the rack fabric, one core, release build: 2.0 M delivered copies of 1522-byte frames in a
CPU second of one leaf (one source, 4 local and 4 remote copies, 40 ms); with 16 ports of a leaf saturated by uniform
unicast 50 times the packets that BookSim2 delivers in a CPU second; 1 ms of a broadcast to 640 terminals at 99 Gb/s in
20 s and 1 GB; the same bytes on a second run.

BookSim2's figure, 91,000 flits of a crossbar of 16 ports (islip, two iterations, 16 virtual channels), was taken once
on another machine of this kind: it is told as a ratio to that. CPU seconds are those of the program, its start among
them. Only what does not depend on the machine decides the exit status: 1 where a second run gives other bytes.

    .venv/bin/python benchmarks/rack_fabric.py [--repeats 3] [--json]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import machine

from blast_sim.base.text import table
from blast_sim.fabric.simulator import NoSimulator, program

Row = dict[str, Any]
Scenario = dict[str, Any]

BOOKSIM_PACKETS = 91_000
LOCAL_AND_REMOTE = [[0, 1], [0, 2], [0, 3], [0, 4], [1, 0], [2, 0], [3, 0], [4, 0]]


@dataclass(frozen=True)
class Bar:
    """What is claimed: a least value, or a greatest one; None: nothing."""

    unit: str
    least: float | None = None
    most: float | None = None

    def met(self, value: float) -> bool | None:
        """Whether the claim holds; None: there is none."""
        if self.least is not None:
            return value >= self.least
        return None if self.most is None else value <= self.most


@dataclass(frozen=True)
class Run:
    """What a run took, and gave."""

    cpu_seconds: float
    memory_bytes: int
    results: dict[str, Any]
    digest: str


def one_leaf(spines: int) -> Scenario:
    """One source, four copies in its leaf and four in others; without spines these are at a constant distance."""
    flow = {"source": [0, 0], "to": LOCAL_AND_REMOTE, "frame_bytes": 1522, "rate_gbps": 99}
    return {"duration_ns": 40_000_000, "topology": {"leaves": 5, "spines": spines}, "flows": [flow]}


def saturated(ports: int = 16) -> Scenario:
    """All ports of a leaf send to all others as fast as they can."""

    def flow(port: int) -> dict[str, Any]:
        others = [[0, other] for other in range(ports) if other != port]
        return {"source": [0, port], "to": others, "spread": "uniform", "frame_bytes": 1522, "rate_gbps": 100}

    return {
        "duration_ns": 5_000_000,
        "topology": {"leaves": 1, "spines": 0, "ethernet_ports": ports, "pcie_ports": 0},
        "flows": [flow(port) for port in range(ports)],
    }


def broadcast() -> Scenario:
    """One terminal to all others of four racks."""
    flow = {"source": [0, 0], "to": "all", "tree": "rack", "frame_bytes": 1522, "rate_gbps": 99}
    return {"duration_ns": 1_000_000, "flows": [flow]}


def run(scenario: Scenario) -> Run:
    """Simulate in a process of its own."""
    command = [str(program()), "run", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(scenario).encode())
        process.stdin.close()
        out = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"the simulator ended with status {process.returncode}")
    digest = hashlib.blake2b(out).hexdigest()
    return Run(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, json.loads(out), digest)


def rows(repeats: int) -> Iterator[Row]:
    """Each claim: medians of runs."""
    million = 1e6
    for name, scenario, delivered, bar in (
        ("one leaf, constant delay to the others", one_leaf(0), _copies, Bar("M copies a CPU second", 2.0)),
        ("one leaf, its packets over spines", one_leaf(32), _copies, Bar("M copies a CPU second")),
        (
            "16 ports saturated with unicast",
            saturated(),
            _packets,
            Bar("M packets a CPU second", 50 * BOOKSIM_PACKETS / million),
        ),
    ):
        runs = [run(scenario) for _ in range(repeats)]
        yield _row(name, bar, statistics.median(delivered(each) / each.cpu_seconds for each in runs) / million, runs)
    runs = [run(broadcast()) for _ in range(repeats)]
    name = "1 ms of broadcast to 640 at 99 Gb/s"
    yield _row(name, Bar("CPU seconds", most=20.0), statistics.median(each.cpu_seconds for each in runs), runs)
    yield _row("the same", Bar("GB", most=1.0), max(each.memory_bytes for each in runs) / 1e9, runs)


def _copies(done: Run) -> float:
    return float(done.results["delivered_copies"])


def _packets(done: Run) -> float:
    counters = done.results["counters"]
    return float(counters["payload_packets"] + counters["cached_packets"])


def _row(name: str, bar: Bar, value: float, runs: list[Run]) -> Row:
    same = len({each.digest for each in runs}) == 1
    claimed = bar.least if bar.most is None else bar.most
    return {
        "what": name,
        "value": value,
        "unit": bar.unit,
        "bar": claimed,
        "met": bar.met(value),
        "same_bytes": same,
    }


def main() -> bool:
    """Measure and print; whether runs repeat to the byte."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3, choices=range(2, 100), metavar="N")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    try:
        program()
    except NoSimulator as error:
        parser.error(str(error))
    found = list(rows(args.repeats))
    if args.json:
        print(json.dumps({"machine": machine.describe(), "rows": found}, indent=2))
    else:
        print(machine.describe())
        print(table(list(found[0]), [[_cell(value) for value in row.values()] for row in found]))
    return all(row["same_bytes"] for row in found)


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value:.3g}"
    return "" if value is None else str(value)


if __name__ == "__main__":
    sys.exit(not main())
