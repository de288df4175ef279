"""The scenarios of the Kascade paper (section IV but G, for which see pipeline_failures.py), measured with our pipeline
for `blast figures pipeline`, which draws them with their 95 % confidence intervals.

ordered  IV-A  10 to 100 receivers in racks of ten, 16 Mbit/s each, 64 Mbit/s from a rack to the core, 20 MB
random   IV-C  the same, with the nodes of the pipeline in random order, another one in every run
disk     IV-D  as ordered, but copies are written to the disk of --disk instead of to memory
sites    IV-E  1 to 6 receivers at 400 Mbit/s, every one but the first on a site of its own, 16 ms there and back: a
               relay in user space adds the delay, as the kernel has no netem; 200 MB
small    IV-F  10 to 100 receivers, unshaped, 50 MB: how long it takes

The paper's Gbit/s links and GB files are scaled down so that one machine can be 101 hosts; what compares with it is the
share of the link's rate. Other tools run in turn with ours where --tools names them. As root, with nothing else
running:

    .venv/bin/python benchmarks/pipeline_scenarios.py --json >pipeline_scenarios.json    # about an hour, 9 GB of memory
    .venv/bin/python benchmarks/pipeline_scenarios.py --quick                               # a few minutes
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import machine
from tqdm import tqdm
from transport_bed import script
from transport_bed.comparison import compiled
from transport_bed.run import transfer
from transport_bed.scenarios import PEERS, SCENARIOS, Scenario
from transport_bed.tools import TOOLS

REPEATS, QUICK_REPEATS = 5, 2
QUICK_RECEIVERS, QUICK_MEGABYTES = 2, 5
_SLOWEST_BITS_PER_SECOND = 5e6
"""Of one copy: who is slower has hung."""
_START_SECONDS = 60.0

Row = dict[str, Any]


def main() -> bool:
    """Measure and print; whether every transfer of ours was complete."""
    args = _arguments()
    cells = [
        (scenario, number)
        for scenario in map(SCENARIOS.__getitem__, args.scenarios)
        for number in _receivers(scenario, args.quick)
    ]
    rows: list[Row] = []
    with tqdm(total=len(cells), unit="cell", disable=None, file=sys.stderr) as bar:
        for scenario, receivers in cells:
            bar.set_postfix_str(f"{scenario.name}, {receivers} receivers")
            rows += _measure(scenario, receivers, args)
            bar.update()
    if args.json:
        print(json.dumps({"machine": machine.describe(), "rows": rows}, indent=2))
    else:
        print(machine.describe())
        print("\n".join(map(_line, rows)))
    return not any(row["failures"] for row in rows if row["tool"] == "pipeline")


def _measure(scenario: Scenario, receivers: int, args: argparse.Namespace) -> list[Row]:
    """One row for each tool."""
    megabytes = min(scenario.megabytes, QUICK_MEGABYTES) if args.quick else scenario.megabytes
    size = megabytes * 1_000_000
    limit = _START_SECONDS + size * 8 / _SLOWEST_BITS_PER_SECOND
    others = {name: TOOLS[name]() for name in args.tools if name in scenario.tools}
    rows = {
        name: _row(scenario, receivers, size, name, title)
        for name, title in (("pipeline", "Blast, pipeline"), *((name, tool.title) for name, tool in others.items()))
    }
    with ExitStack() as undo:
        bed, source = undo.enter_context(script.bed_and_file(scenario.plan(receivers), size))
        parent = source.parent
        if scenario.to_disk:
            parent = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="blast-transport-", dir=args.disk)))
        programs = compiled(others.values(), source.parent)
        for seed in range(args.repeats):
            for name, row in rows.items():
                tool = others.get(name) or scenario.pipeline(receivers, seed)
                outcome = transfer(tool, bed, source, programs, limit, parent)
                if outcome.failure:
                    row["failures"].append(outcome.failure)
                else:
                    row["seconds"].append(round(outcome.seconds, 4))
    return list(rows.values())


def _row(scenario: Scenario, receivers: int, size: int, tool: str, title: str) -> Row:
    return {
        "scenario": scenario.name,
        "section": scenario.section,
        "tool": tool,
        "title": title,
        "receivers": receivers,
        "rate_mbps": scenario.rate_mbps,
        "bytes": size,
        "seconds": [],
        "failures": [],
    }


def _line(row: Row) -> str:
    start = f"{row['scenario']:<10}{row['receivers']:>4} receivers  {row['title']:<22}"
    failed = f"   {len(row['failures'])} failed: {row['failures'][-1]}" if row["failures"] else ""
    if not row["seconds"]:
        return f"{start}{'-':>10}{failed}"
    mean = statistics.mean(row["seconds"])
    spread = f"({min(row['seconds']):.2f}-{max(row['seconds']):.2f})"
    share = f"{row['bytes'] * 8e-6 / mean / row['rate_mbps']:>8.3f} of the link" if row["rate_mbps"] else ""
    return f"{start}{mean:>10.2f} s {spread:<18}{row['bytes'] / 1e6 / mean:>8.2f} MB/s{share}{failed}"


def _receivers(scenario: Scenario, quick: bool) -> Sequence[int]:
    return scenario.receivers[:QUICK_RECEIVERS] if quick else scenario.receivers


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenarios", type=script.some_of(SCENARIOS), default=list(SCENARIOS))
    parser.add_argument("--tools", type=script.some_of(PEERS), default=[], help=f"beside ours: {','.join(PEERS)}")
    parser.add_argument("--repeats", type=script.count, help=f"of each (default: {REPEATS})")
    parser.add_argument("--disk", type=Path, default=Path("/var/tmp"), metavar="DIR", help="(default: /var/tmp)")
    parser.add_argument("--quick", action="store_true", help="few receivers, small files, two repeats")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    args.repeats = args.repeats or (QUICK_REPEATS if args.quick else REPEATS)
    return args


if __name__ == "__main__":
    script.run(main)
