"""Claims about the rates of the optical transport and the pipeline, compared with other tools.

The optical transport sends a file to seven hosts at >= 0.35 of the rate at which they can write it, and >= 6 times as
fast as the better of udpcast and uftp; on shaped links at >= 0.97 of the payload limit, as fast to 15 hosts as to 3,
and at 400 Mbit/s >= 6.5 times as fast as naive TCP. The pipeline reaches >= 0.9 of the payload limit, and of naive TCP
on unshaped links. To one receiver, the optical transport reaches >= 1.1 of the rate of naive TCP that verifies
(BLAKE3), and the pipeline >= 0.95.

Sender and receivers are network namespaces on this machine: packets cross a kernel bridge, optical datagrams the lab's
emulated optics. The tools send the same file in memory one after another. The clock runs from the start of the sender
to the last complete copy, which is then compared byte by byte; the first round does not count. The floor is N processes
that only write. All hosts share the processors of this machine: compare only ratios within one run. On shaped links,
copies go into memory that was used before (`bed/contents.py`).

As root, on Debian 12, on an idle machine (two to three hours; 17 GB of memory for 15 receivers):

    apt-get install -y --no-install-recommends $(cat requirements/debian-benchmarks.txt)
    .venv/bin/python benchmarks/transfers/rates.py --json > transport.json

    .venv/bin/python benchmarks/transfers/rates.py --quick                       # two minutes, 64 MB, N = 3
    .venv/bin/python benchmarks/transfers/rates.py --cells 400:7 --tools floor,optical,naive --repeats 5
    .venv/bin/python benchmarks/transfers/rates.py --cells unshaped:1 --tools optical,optical-python,verifying # engines

Exit status 1 if a transport of Blast failed; rates do not change the exit status.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from functools import partial

from tqdm import tqdm

from benchmarks import machine
from benchmarks.transfers.bed import script
from benchmarks.transfers.bed.comparison import Cell, Effort, Row, claims, compare, table, verdicts
from benchmarks.transfers.bed.shape import shape
from benchmarks.transfers.bed.tools import TOOLS
from mininet_topos.kernel.errors import LabError

CELLS, QUICK_CELLS = "unshaped:3,7,15 400:3,7,15 1000:3", "unshaped:3"
MEGABYTES, QUICK_MEGABYTES = 1000, 64
REPEATS, QUICK_REPEATS = 3, 1
UNUSUAL = ("unicast", "optical-python", "pipeline-python", "verifying", "verifying_floor")
"""Tools that run only if named: slow ones, and comparisons for the compiled engine."""
OURS = ("optical", "multicast", "pipeline")


def main() -> bool:
    """Measure and print; return whether all transfers by Blast were complete."""
    args = _arguments()
    effort = Effort(args.megabytes * 1_000_000, args.repeats)
    rows: list[Row] = []

    def show() -> None:
        found = claims(rows)
        machine.show(
            args.json, {"rows": rows, "claims": [asdict(one) for one in found]}, [*table(rows), *verdicts(found)]
        )

    try:
        with tqdm(total=len(args.cells) * len(args.tools) * len(effort.rounds), unit="run", disable=None) as bar:
            for cell in args.cells:
                for row in compare(cell, args.tools, effort, partial(script.report, bar)):
                    rows.append(row)
    except LabError:
        # Hours of measurements must not be lost.
        show()
        raise
    show()
    return not any(row["failures"] for row in rows if row["tool"] in OURS)


def _arguments() -> argparse.Namespace:
    parser = script.parser(__doc__, MEGABYTES, REPEATS)
    cells = f"cells SHAPE:N,N…: link rate in Mbit/s or unshaped, and numbers of receivers (default: {CELLS})"
    parser.add_argument("--cells", type=_cells, default=_cells(CELLS), help=cells)
    usual = [name for name in TOOLS if name not in UNUSUAL]
    tools = f"tools, separated by commas: {','.join(TOOLS)} (default: {','.join(usual)})"
    parser.add_argument("--tools", type=script.some_of(TOOLS), default=usual, help=tools)
    quick = f"{QUICK_CELLS}, {QUICK_MEGABYTES} MB, {QUICK_REPEATS} repeat"
    parser.add_argument("--quick", action="store_true", help=quick)
    args = parser.parse_args()
    if args.quick:
        parser.set_defaults(cells=_cells(QUICK_CELLS), megabytes=QUICK_MEGABYTES, repeats=QUICK_REPEATS)
        args = parser.parse_args()
    missing = {name: TOOLS[name]().missing for name in args.tools}
    if any(missing.values()):
        lacking = "; ".join(f"{name} needs {', '.join(needed)}" for name, needed in missing.items() if needed)
        parser.error(f"{lacking}: install requirements/debian-benchmarks.txt, or choose other --tools")
    return args


def _cells(text: str) -> list[Cell]:
    cells: list[Cell] = []
    for part in text.split():
        name, _, numbers = part.partition(":")
        try:
            cells += [Cell(shape(name), int(number)) for number in numbers.split(",")]
        except ValueError:
            raise argparse.ArgumentTypeError(f"{part!r} is not SHAPE:N,N…, like unshaped:3,7 or 400:15") from None
    return cells


if __name__ == "__main__":
    script.run(main)
