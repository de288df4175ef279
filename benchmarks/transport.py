"""Claims: by light a file reaches seven hosts at >= 0.35 of the rate at which they could write it, >= 6 times as fast
as by the best of udpcast and uftp; on shaped links at >= 0.97 of the payload limit, as fast for 15 hosts as for 3, and
at 400 Mbit/s >= 6.5 times as fast as by naive TCP. The pipeline reaches >= 0.9 of the limit, and of naive TCP unshaped.

Sender and receivers are network namespaces on this machine: packets go over a kernel bridge, light over the lab's
emulated optics. All tools carry the same file in memory in turn; the clock runs from the sender's start to the last
receiver's complete file, which is then compared byte by byte; a first round does not count. The floor is N processes
that only write. Every cost of all hosts is paid on this machine's processors: only ratios within one run mean anything.
Where links set the pace, copies go into memory that was used before (`transport_bed/warm_memory.py`).

As root, on Debian 12, with nothing else running (two to three hours; 17 GB of memory for 15 receivers):

    apt-get install -y --no-install-recommends $(cat requirements/debian-benchmarks.txt)
    .venv/bin/python benchmarks/transport.py --results transport.json --plot transport.svg

    .venv/bin/python benchmarks/transport.py --quick                       # two minutes, 64 MB, N = 3
    .venv/bin/python benchmarks/transport.py --cells 400:7 --tools floor,optical,naive --repeats 5

Exit status 1 if a tool of ours failed; the bars are of rates, which are told and decide nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import machine
from tqdm import tqdm
from transport_bed import script
from transport_bed.claims import claims
from transport_bed.comparison import Cell, Effort, Row
from transport_bed.failures import CannotRun
from transport_bed.lab import LabCell
from transport_bed.shape import shape
from transport_bed.table import table, verdicts
from transport_bed.tools import TOOLS

from mininet_topos.errors import LabError

CELLS = "unshaped:3,7,15 400:3,7,15 1000:3 lab"
QUICK_CELLS = "unshaped:3"
MEGABYTES, QUICK_MEGABYTES = 1000, 64
REPEATS, QUICK_REPEATS = 3, 1
UNUSUAL = ("unicast", "sealed")
"""As slow as naive TCP on shaped links, and in no claim."""
OURS = ("optical", "pipeline")


def main() -> bool:
    """Measure and print; whether all our transfers came to their end."""
    args = _arguments()
    effort = Effort(args.megabytes * 1_000_000, args.repeats)
    rows = _kept(args, effort)
    try:
        _measure(args, effort, rows)
    except LabError:
        # What was measured before is worth its time.
        _show(args, rows)
        raise
    return _show(args, rows)


def _measure(args: argparse.Namespace, effort: Effort, rows: list[Row]) -> None:
    """Add the rows of the cells that have none."""
    wanted = [cell for cell in args.cells if not any(row["cell"] == cell.name for row in rows)]
    runs = sum(len(cell.tools(args.tools)) for cell in wanted) * len(effort.rounds)
    with tqdm(total=runs, unit="run", disable=None, file=sys.stderr) as bar:
        for cell in wanted:
            for row in cell.measure(args.tools, effort, lambda text: _tell(bar, text)):
                rows.append(row)
                _keep(args.results, rows)


def _show(args: argparse.Namespace, rows: list[Row]) -> bool:
    """Print what there is; whether all our transfers came to their end."""
    found = claims(rows)
    if args.plot is not None:
        from transport_bed.plot import draw

        draw(rows, args.plot, machine.describe())
    if args.json:
        decided = [{"claim": one.words, "value": one.value, "bar": one.bar, "kept": one.kept} for one in found]
        print(json.dumps({"machine": machine.describe(), "rows": rows, "claims": decided}, indent=2))
    else:
        print("\n".join([machine.describe(), *table(rows), "", *verdicts(found)]))
    return not any(row["failures"] for row in rows if row["tool"] in OURS)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--cells",
        type=_cells,
        help=f"SHAPE:N,N… …, a shape in Mbit/s or unshaped; lab: through controller, optical switch and ToRs, with a "
        f"twentieth of the file (default: {CELLS})",
    )
    usual = [name for name in TOOLS if name not in UNUSUAL]
    parser.add_argument(
        "--tools", type=script.some_of(TOOLS), default=usual, help=f"of {','.join(TOOLS)} (default: {','.join(usual)})"
    )
    parser.add_argument("--megabytes", type=script.count, help=f"of the file (default: {MEGABYTES})")
    parser.add_argument(
        "--repeats", type=script.count, help=f"that count, after one that does not (default: {REPEATS})"
    )
    parser.add_argument(
        "--quick", action="store_true", help=f"{QUICK_CELLS}, {QUICK_MEGABYTES} MB, {QUICK_REPEATS} repeat"
    )
    parser.add_argument(
        "--results", type=Path, metavar="FILE", help="keep every cell here; those it has are not measured again"
    )
    parser.add_argument("--plot", type=Path, metavar="FILE.svg")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    args.cells = args.cells or _cells(QUICK_CELLS if args.quick else CELLS)
    args.megabytes = args.megabytes or (QUICK_MEGABYTES if args.quick else MEGABYTES)
    args.repeats = args.repeats or (QUICK_REPEATS if args.quick else REPEATS)
    missing = {name: TOOLS[name]().missing for name in args.tools}
    if any(missing.values()):
        lacking = "; ".join(f"{name} needs {', '.join(what)}" for name, what in missing.items() if what)
        parser.error(f"{lacking}: install requirements/debian-benchmarks.txt, or choose other --tools")
    return args


def _cells(text: str) -> list[Cell | LabCell]:
    cells: list[Cell | LabCell] = []
    for part in text.split():
        if part == "lab":
            cells.append(LabCell())
            continue
        name, _, numbers = part.partition(":")
        try:
            cells += [Cell(shape(name), int(number)) for number in numbers.split(",")]
        except ValueError:
            raise argparse.ArgumentTypeError(f"{part!r} is not SHAPE:N,N…, like unshaped:3,7 or 400:15") from None
    return cells


def _tell(bar: tqdm[Any], text: str) -> None:
    bar.set_postfix_str(text)
    bar.update()


def _kept(args: argparse.Namespace, effort: Effort) -> list[Row]:
    """The rows of whole cells: ratios are of one run. Raises CannotRun for another file's results."""
    if args.results is None or not args.results.exists():
        return []
    rows: list[Row] = json.loads(args.results.read_text())["rows"]
    cells = {cell.name: cell for cell in args.cells}
    if any(row["bytes"] != cells[row["cell"]].size(effort) for row in rows if row["cell"] in cells):
        raise CannotRun(f"{args.results} has results of a file of another size: name another file, or delete it")
    measured = {(row["cell"], row["tool"]) for row in rows}
    whole = {name for name, cell in cells.items() if all((name, tool) in measured for tool in cell.tools(args.tools))}
    return [row for row in rows if row["cell"] not in cells or row["cell"] in whole]


def _keep(path: Path | None, rows: Sequence[Row]) -> None:
    if path is not None:
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_text(json.dumps({"machine": machine.describe(), "rows": rows}, indent=2) + "\n")
        unfinished.rename(path)


if __name__ == "__main__":
    script.run(main)
