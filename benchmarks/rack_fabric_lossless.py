"""Claim: dropping from the head of a VOQ leaves what stands beside a congested copy alone, and PAUSE does not.

A multicast of 60 Gb/s to 4 local and 4 remote terminals, the first of which three others fill; from the same host a
victim of 30 Gb/s to a terminal that nobody else wants, and another flow beside a copy that is not congested. In the
lossy class the multicast's slow copy loses frames; in the lossless one it is PAUSE that slows down, without and with
congestion notification. Goodput in Gb/s over 6 ms, after 6 ms of warm-up; the same on every machine.

    .venv/bin/python benchmarks/rack_fabric_lossless.py [--json]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from typing import Any

from blast_sim.base.text import table
from blast_sim.fabric.simulator import NoSimulator, program

Row = dict[str, Any]

CASES = (
    ("drop from the head", False, "none"),
    ("PAUSE", True, "none"),
    ("PAUSE, congestion points at inputs", True, "inputs"),
    ("PAUSE, congestion points at outputs", True, "outputs"),
)
COPIES = [[0, 1], [0, 2], [0, 3], [0, 4], [1, 0], [2, 0], [3, 0], [4, 0]]


def scenario(lossless: bool, points: str) -> dict[str, Any]:
    """What is simulated."""

    def flow(name: str, source: list[int], to: list[list[int]], gbps: float) -> dict[str, Any]:
        return {"name": name, "source": source, "to": to, "frame_bytes": 1522, "rate_gbps": gbps}

    return {
        "duration_ns": 12_000_000,
        "warmup_ns": 6_000_000,
        "topology": {"leaves": 9},
        "classes": [{"lossless": lossless}],
        "qcn": {"points": points},
        "flows": [
            flow("multicast", [0, 0], COPIES, 60),
            flow("victim", [0, 0], [[1, 1]], 30),
            *(flow(f"unicast {number}", [5 + number, 0], [[0, 1]], 99) for number in range(3)),
            flow("beside", [5, 1], [[0, 2]], 30),
        ],
    }


def row_of(name: str, results: dict[str, Any]) -> Row:
    """What a case came to."""
    flows = {flow["name"]: flow for flow in results["flows"]}
    copies = [one["gbps"] for one in flows["multicast"]["destinations"]]
    lost = sum(flows["multicast"][f"dropped_{what}"] for what in ("frames", "headers", "heads"))
    return {
        "class": name,
        "congested copy": copies[0],
        "slowest other copy": min(copies[1:]),
        "victim": flows["victim"]["destinations"][0]["gbps"],
        "beside": flows["beside"]["destinations"][0]["gbps"],
        "copies lost": lost,
        "pauses": results["counters"]["pauses"],
    }


def main() -> int:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    try:
        command = [str(program()), "run", "-"]
    except NoSimulator as error:
        parser.error(str(error))
    rows = []
    for name, lossless, points in CASES:
        text = json.dumps(scenario(lossless, points))
        told = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
        rows.append(row_of(name, json.loads(told)))
    if args.json:
        print(json.dumps(rows, indent=2))
    else:
        print(table(list(rows[0]), [[_cell(value) for value in row.values()] for row in rows]))
    return 0


def _cell(value: object) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    sys.exit(main())
