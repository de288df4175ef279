"""Claims about the speed, memory and determinism of the rack-fabric simulator.

With the release build, on one core:

- one leaf (one source, 4 local and 4 remote copies, 40 ms) delivers 2.0 M copies of 1522-byte frames per CPU second;
- with 16 ports of a leaf saturated by uniform unicast, it delivers 50 times the packets per CPU second of BookSim2;
- 1 ms of a broadcast to 640 terminals at 99 Gb/s takes at most 20 CPU seconds and 1 GB;
- a second run produces the same bytes.

The rate of BookSim2, 91,000 flits of a crossbar of 16 ports (islip, two iterations, 16 virtual channels), was measured
once on another machine of this kind. CPU seconds include the start of the program.

    .venv/bin/python benchmarks/simulators/rack_fabric.py [--repeats 3] [--json]

Exit status 1 if a second run produces other bytes; times do not change the exit status.
"""

from __future__ import annotations

import hashlib
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks import machine
from blast_sim.fabric.simulator import NoSimulatorError, program

Row = dict[str, Any]
Scenario = dict[str, Any]

BOOKSIM_PACKETS = 91_000
LOCAL_AND_REMOTE = [[0, 1], [0, 2], [0, 3], [0, 4], [1, 0], [2, 0], [3, 0], [4, 0]]


@dataclass(frozen=True)
class Run:
    """The cost and the result of a run."""

    cpu_seconds: float
    memory_bytes: int
    results: dict[str, Any]
    digest: str

    @property
    def copies(self) -> float:
        """Delivered copies per CPU second, in millions."""
        return float(self.results["delivered_copies"]) / self.cpu_seconds / 1e6

    @property
    def packets(self) -> float:
        """Packets per CPU second, in millions."""
        counters = self.results["counters"]
        return float(counters["payload_packets"] + counters["cached_packets"]) / self.cpu_seconds / 1e6


def one_leaf() -> Scenario:
    """Return a scenario with four copies in a leaf and four in other leaves, at a constant distance."""
    flow = {"source": [0, 0], "to": LOCAL_AND_REMOTE, "frame_bytes": 1522, "rate_gbps": 99}
    return {"duration_ns": 40_000_000, "topology": {"leaves": 5, "spines": 0}, "flows": [flow]}


def saturated(ports: int = 16) -> Scenario:
    """Return a scenario with flows from all ports of a leaf to all others."""
    flow = {"spread": "uniform", "frame_bytes": 1522, "rate_gbps": 100}
    others = [[[0, other] for other in range(ports) if other != port] for port in range(ports)]
    return {
        "duration_ns": 5_000_000,
        "topology": {"leaves": 1, "spines": 0, "ethernet_ports": ports, "pcie_ports": 0},
        "flows": [{"source": [0, port], "to": others[port], **flow} for port in range(ports)],
    }


def broadcast() -> Scenario:
    """Return a scenario with a broadcast from one terminal to all others of four racks."""
    flow = {"source": [0, 0], "to": "all", "tree": "rack", "frame_bytes": 1522, "rate_gbps": 99}
    return {"duration_ns": 1_000_000, "flows": [flow]}


def run(scenario: Scenario) -> Run:
    """Simulate in a separate process, whose CPU time and memory are measured."""
    with subprocess.Popen([str(program()), "run", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(scenario).encode())
        process.stdin.close()
        out = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"the simulator exited with status {process.returncode}: see its message above")
    digest = hashlib.blake2b(out).hexdigest()
    return Run(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, json.loads(out), digest)


def rows(repeats: int) -> Iterator[Row]:
    """Yield a row for each claim, with medians of runs."""

    def runs(scenario: Scenario) -> list[Run]:
        return [run(scenario) for _ in range(repeats)]

    found = runs(one_leaf())
    copies = statistics.median(each.copies for each in found)
    yield _row("one leaf, constant delay to the others", "M copies per CPU second", copies, found, min_bar=2.0)
    found = runs(saturated())
    packets = statistics.median(each.packets for each in found)
    min_bar = 50 * BOOKSIM_PACKETS / 1e6
    yield _row("16 ports saturated with unicast", "M packets per CPU second", packets, found, min_bar=min_bar)
    found = runs(broadcast())
    seconds = statistics.median(each.cpu_seconds for each in found)
    yield _row("1 ms of broadcast to 640 at 99 Gb/s", "CPU seconds", seconds, found, max_bar=20.0)
    yield _row("the same", "GB", max(each.memory_bytes for each in found) / 1e9, found, max_bar=1.0)


def _row(  # noqa: PLR0913 - the columns
    name: str, unit: str, value: float, runs: list[Run], *, min_bar: float | None = None, max_bar: float | None = None
) -> Row:
    bar = min_bar if max_bar is None else max_bar
    met = None if bar is None else value >= bar if max_bar is None else value <= bar
    same = len({each.digest for each in runs}) == 1
    return {"name": name, "value": value, "unit": unit, "bar": bar, "met": met, "same_bytes": same}


def main() -> bool:
    """Measure and print; return whether repeated runs produce the same bytes."""
    parser = machine.parser(__doc__)
    parser.add_argument("--repeats", type=int, default=3, choices=range(2, 100), metavar="N", help="runs (default: 3)")
    args = parser.parse_args()
    try:
        program()
    except NoSimulatorError as error:
        parser.error(str(error))
    found = list(rows(args.repeats))
    machine.show(args.json, {"rows": found}, [machine.as_table(found)])
    return all(row["same_bytes"] for row in found)


if __name__ == "__main__":
    sys.exit(not main())
