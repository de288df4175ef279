"""Claim: a pipeline completes every scenario of the Kascade paper (section IV, A to F) at a competitive rate.

The rate is comparable to that of udpcast, TakTuk's chain and tree, OpenMPI's broadcast and naive TCP. `blast figures
pipeline` draws the results.

ordered  IV-A  5 to 100 receivers in racks of ten, 16 Mbit/s each, 64 Mbit/s from a rack to the core, 20 MB
fast     IV-B  1 to 14 receivers, links as fast as the machine, 500 MB; with the processor time
random   IV-C  as ordered, with the receivers in a random order that changes with the round, not with the tool
disk     IV-D  as ordered, with copies on the disk of --disk instead of in memory; ours are synced
sites    IV-E  1 to 6 receivers at 400 Mbit/s, each but the first on a separate site, 16 ms round trip, 200 MB
small    IV-F  5 to 100 receivers, links as fast as the machine, 50 MB: start-up

Every tool is one command; the other hosts only serve remote shells (unencrypted, the same for all). `blast send --ssh`,
taktuk and mpirun start their agents; `clush` starts the receivers of udpcast and naive TCP. Start-up, until the first
byte at any receiver, is separate from the transfer; compare it in scenarios with unlimited links. Links and files are
scaled down so that one machine can emulate 101 hosts: compare the share of the link's rate with the paper.

A tool that takes longer than --limit, start-up included, is not run with more receivers. As root, on an idle machine:

    apt-get install -y --no-install-recommends $(cat requirements/debian-benchmarks.txt)
    .venv/bin/python benchmarks/transfers/pipeline_scenarios.py --keep kept.jsonl    # hours, 9 GB of memory; resumable
    .venv/bin/python benchmarks/transfers/pipeline_scenarios.py --quick              # some ten minutes
    .venv/bin/python benchmarks/transfers/pipeline_scenarios.py --tools pipeline     # without the others

Exit status 1 if a transfer by Blast failed or exceeded the limit.
"""

from __future__ import annotations

import argparse
import tempfile
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from benchmarks import machine
from benchmarks.transfers.bed import script
from benchmarks.transfers.bed.comparison import compiled
from benchmarks.transfers.bed.kept_rounds import KeptRounds
from benchmarks.transfers.bed.measured import Measured, measured
from benchmarks.transfers.bed.scenarios import (
    COMMANDS,
    OURS,
    SCENARIOS,
    Row,
    Scenario,
    is_given_up,
    line,
    row_of,
    too_slow,
)
from blast_sim.base.options import counts

REPEATS, QUICK_REPEATS = 5, 2
QUICK_RECEIVERS, QUICK_MEGABYTES = 2, 5
LIMIT_SECONDS = 180
_HOW_TO_INSTALL = "apt-get install -y --no-install-recommends $(cat requirements/debian-benchmarks.txt)"


def main() -> bool:
    """Measure and print; return whether every transfer by Blast was complete."""
    args = _arguments()
    kept = KeptRounds(args.keep, {"quick": args.quick, "limit_seconds": args.limit})
    rows: list[Row] = []
    for scenario in args.scenarios:
        numbers = [number for number in scenario.receivers if not args.receivers or number in args.receivers]
        for receivers in numbers[:QUICK_RECEIVERS] if args.quick else numbers:
            rows += _rows(scenario, receivers, args, kept, rows)
    machine.show(args.json, {"rows": rows}, map(line, rows))
    return not any(row["failures"] or row["late"] for row in rows if row["tool"] == OURS)


def _rows(
    scenario: Scenario, receivers: int, args: argparse.Namespace, kept: KeptRounds, before: list[Row]
) -> list[Row]:
    """Return the rows of one bed, and measure missing ones. Raises PrerequisiteError, LabError."""
    megabytes = min(scenario.megabytes, QUICK_MEGABYTES) if args.quick else scenario.megabytes
    settings = {"bytes": megabytes * 1_000_000, "limit_seconds": args.limit, "repeats": args.repeats}
    left_out = {tool: _left_out(scenario, receivers, tool, before) for tool in args.tools}
    cases = {tool: f"{scenario.name}, {receivers}, {tool}" for tool in args.tools if not left_out[tool]}

    def runs(tool: str) -> list[Measured]:
        return [Measured(**one) for one in kept.of(cases[tool], args.repeats)] if tool in cases else []

    remaining = [tool for tool in cases if len(runs(tool)) < args.repeats and not is_given_up(runs(tool))]
    if remaining:
        with ExitStack() as undo:
            bed, source = undo.enter_context(script.bed_and_file(scenario.plan(receivers), settings["bytes"]))
            undo.enter_context(scenario.distances(bed))
            parent = source.parent
            if scenario.to_disk:
                parent = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="blast-transport-", dir=args.disk)))
            tools = {tool: COMMANDS[tool]() for tool in remaining}
            programs = compiled(tools.values(), source.parent)
            for number, tool in script.runs(remaining, args.repeats):
                if not kept.has(number, cases[tool]) and not is_given_up(runs(tool)):
                    tools[tool].order = scenario.order(receivers, number)
                    outcome = measured(tools[tool], bed, source, programs, args.limit, parent)
                    kept.add(number, cases[tool], asdict(outcome))
    return [
        row_of(scenario, receivers, tool, settings, runs(tool)) | {"left_out": left_out[tool]} for tool in args.tools
    ]


def _left_out(scenario: Scenario, receivers: int, tool: str, before: list[Row]) -> str:
    missing = COMMANDS[tool]().missing
    lacking = f"{' and '.join(missing)} not installed: {_HOW_TO_INSTALL}" if missing else ""
    return lacking or scenario.unable.get(tool, "") or too_slow(before, scenario.name, tool, receivers)


def _arguments() -> argparse.Namespace:
    parser = machine.parser(__doc__)
    names = f"scenarios, separated by commas: {','.join(SCENARIOS)} (default: all)"
    parser.add_argument("--scenarios", type=script.some_of(SCENARIOS), default=list(SCENARIOS), help=names)
    tools = f"tools, separated by commas: {','.join(COMMANDS)} (default: all)"
    parser.add_argument("--tools", type=script.some_of(COMMANDS), default=list(COMMANDS), help=tools)
    receivers = "numbers of receivers to measure (default: those of the scenario)"
    parser.add_argument("--receivers", type=counts, metavar="N,N…", help=receivers)
    repeats = f"runs of each tool (default: {REPEATS}, with --quick {QUICK_REPEATS})"
    parser.add_argument("--repeats", type=script.count, help=repeats)
    limit = f"time limit of a run in s (default: {LIMIT_SECONDS})"
    parser.add_argument("--limit", type=script.count, default=LIMIT_SECONDS, help=limit)
    disk = "folder for copies of the scenario disk (default: /var/tmp)"
    parser.add_argument("--disk", type=Path, default=Path("/var/tmp"), metavar="DIR", help=disk)
    keep = "file that keeps every result, so that the script can resume"
    parser.add_argument("--keep", type=Path, metavar="FILE", help=keep)
    parser.add_argument("--quick", action="store_true", help="few receivers, small files, two repeats")
    args = parser.parse_args()
    args.scenarios = [SCENARIOS[name] for name in args.scenarios]
    args.repeats = args.repeats or (QUICK_REPEATS if args.quick else REPEATS)
    return args


if __name__ == "__main__":
    script.run(main)
