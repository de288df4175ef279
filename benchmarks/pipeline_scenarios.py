"""The scenarios of the Kascade paper (section IV; for G see pipeline_failures.py): our pipeline beside udpcast,
TakTuk's chain and tree, OpenMPI's broadcast and naive TCP, for `blast figures pipeline`, which draws them.

ordered  IV-A  5 to 100 receivers in racks of ten, 16 Mbit/s each, 64 Mbit/s from a rack to the core, 20 MB
fast     IV-B  1 to 14 receivers, links as fast as the machine, 500 MB; with the processor time
random   IV-C  as ordered, with the receivers in random order, another one in every round, the same for every tool
disk     IV-D  as ordered, but copies are written to the disk of --disk instead of to memory; ours syncs its copies
sites    IV-E  1 to 6 receivers at 400 Mbit/s, each but the first on a site of its own, 16 ms there and back, 200 MB
small    IV-F  5 to 100 receivers, links as fast as the machine, 50 MB: how long it takes

Every tool is one command, given on a host while on the others there is only a server of remote shells (unencrypted, the
same for all): `blast send --ssh`, taktuk and mpirun bring their agents along; for udpcast and naive TCP, which start
nothing, `clush` starts the receivers. Start-up, until the first byte of the file has come to any receiver, and the
transfer behind it are told apart. On this machine all hosts start on the same cores, and the links are slow for what
starting carries: compare start-up where the links are not limited.

The paper's Gbit/s links and GB files are scaled down so that one machine can be 101 hosts; what compares with it is the
share of the link's rate. A tool that is not done in --limit seconds, start-up included, is told so and not tried with
more receivers. What is not installed (requirements/debian-benchmarks.txt) is left out with a sentence. As root, with
nothing else running:

    .venv/bin/python benchmarks/pipeline_scenarios.py --keep kept.json     # hours, 9 GB of memory; an ended run goes on
    .venv/bin/python benchmarks/pipeline_scenarios.py --quick              # some ten minutes
    .venv/bin/python benchmarks/pipeline_scenarios.py --tools pipeline     # without the others
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import machine
from tqdm import tqdm
from transport_bed import script
from transport_bed.comparison import compiled
from transport_bed.measured import measured
from transport_bed.scenario_rows import (
    Row,
    as_json,
    empty_row,
    given_up,
    is_same,
    keep,
    line,
    note,
    read_kept,
    too_slow,
)
from transport_bed.scenarios import COMMANDS, OURS, SCENARIOS, Scenario

REPEATS, QUICK_REPEATS = 5, 2
QUICK_RECEIVERS, QUICK_MEGABYTES = 2, 5
LIMIT_SECONDS = 180
_HOW_TO_INSTALL = "apt-get install -y --no-install-recommends $(cat requirements/debian-benchmarks.txt)"


def main() -> bool:
    """Measure and print; whether every transfer of ours was complete."""
    args = _arguments()
    cells = [(scenario, number) for scenario in args.scenarios for number in _receivers(scenario, args)]
    kept, rows = read_kept(args.keep), list[Row]()
    with tqdm(total=len(cells) * len(args.tools) * args.repeats, unit="run", disable=None, file=sys.stderr) as bar:
        for scenario, receivers in cells:
            wanted = [_wanted(scenario, receivers, tool, args, [*kept, *rows]) for tool in args.tools]
            found = [row for one in wanted for row in kept if is_same(row, one)]
            if len(found) == len(wanted):
                bar.update(len(wanted) * args.repeats)
            else:
                found = wanted
                _measure(scenario, wanted, args, bar)
                kept = [row for row in kept if (row["scenario"], row["receivers"]) != (scenario.name, receivers)]
                kept += found
                keep(args.keep, kept)
            rows += found
    if args.json:
        sys.stdout.write(as_json(rows))
    else:
        print("\n".join([machine.describe(), *map(line, rows)]))
    return not any(row["failures"] or row["late"] for row in rows if row["tool"] == OURS)


def _wanted(scenario: Scenario, receivers: int, tool: str, args: argparse.Namespace, before: list[Row]) -> Row:
    megabytes = min(scenario.megabytes, QUICK_MEGABYTES) if args.quick else scenario.megabytes
    settings = {"bytes": megabytes * 1_000_000, "limit_seconds": args.limit, "repeats": args.repeats}
    row = empty_row(scenario, receivers, tool, settings)
    missing = COMMANDS[tool]().missing
    lacking = f"{' and '.join(missing)} not installed: {_HOW_TO_INSTALL}" if missing else ""
    row["left_out"] = lacking or scenario.unable.get(tool, "") or too_slow(before, row)
    return row


def _measure(scenario: Scenario, rows: list[Row], args: argparse.Namespace, bar: tqdm[Any]) -> None:
    """Fill the rows of one bed, all tools in turn. Raises CannotRun, LabError."""
    receivers = rows[0]["receivers"]
    tools = {row["tool"]: COMMANDS[row["tool"]]() for row in rows if not row["left_out"]}
    with ExitStack() as undo:
        bed, source = undo.enter_context(script.bed_and_file(scenario.plan(receivers), rows[0]["bytes"]))
        undo.enter_context(scenario.distances(bed))
        parent = source.parent
        if scenario.to_disk:
            parent = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="blast-transport-", dir=args.disk)))
        programs = compiled(tools.values(), source.parent)
        for seed in range(args.repeats):
            # Every second round goes backwards: who comes after whom is not always the same.
            for row in rows[:: -1 if seed % 2 else 1]:
                bar.set_postfix_str(f"{scenario.name}, {receivers} receivers: {row['tool']}")
                tool = tools.get(row["tool"])
                if tool is not None and not given_up(row):
                    tool.order = scenario.order(receivers, seed)
                    note(row, measured(tool, bed, source, programs, args.limit, parent))
                bar.update()


def _receivers(scenario: Scenario, args: argparse.Namespace) -> list[int]:
    numbers = [number for number in scenario.receivers if not args.receivers or number in args.receivers]
    return numbers[:QUICK_RECEIVERS] if args.quick else numbers


def _numbers(text: str) -> list[int]:
    return [script.count(part) for part in text.split(",")]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenarios", type=script.some_of(SCENARIOS), default=list(SCENARIOS))
    parser.add_argument(
        "--tools", type=script.some_of(COMMANDS), default=list(COMMANDS), help=f"(default: {','.join(COMMANDS)})"
    )
    parser.add_argument("--receivers", type=_numbers, metavar="N,N…", help="of the scenarios' numbers only these")
    parser.add_argument("--repeats", type=script.count, help=f"of each (default: {REPEATS})")
    parser.add_argument(
        "--limit", type=script.count, default=LIMIT_SECONDS, metavar="S", help=f"of a run (default: {LIMIT_SECONDS})"
    )
    parser.add_argument("--disk", type=Path, default=Path("/var/tmp"), metavar="DIR", help="(default: /var/tmp)")
    parser.add_argument(
        "--keep", type=Path, metavar="FILE", help="keep every bed's rows here; those it has are not measured again"
    )
    parser.add_argument("--quick", action="store_true", help="few receivers, small files, two repeats")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    args.scenarios = [SCENARIOS[name] for name in args.scenarios]
    args.repeats = args.repeats or (QUICK_REPEATS if args.quick else REPEATS)
    return args


if __name__ == "__main__":
    script.run(main)
