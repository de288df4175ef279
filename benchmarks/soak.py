"""Claim: honest clients are served while hostile ones attack a real lab, and nothing is left wrong or leaked.

The lab has Open vSwitch, the emulated optical switch over TL1, agents, and the real controller with TLS, tokens and a
journal on disk. Honest clients request light, read, and send files; hostile ones attack at fixed rates. Baseline slices
without hostile clients alternate with soak slices, so that their p99 compare.

Exit status 1 for a file with another SHA-256, a difference between journal, flow tables and cross-connects at the end,
a controller that ended by itself, or anything left behind: processes, interfaces, bridges, descriptors, light. Times
do not decide. Ctrl-C prints the results so far and removes the lab (130). As root, with nothing else running:

    .venv/bin/python benchmarks/soak.py --minutes 60 --json > soak.json
    .venv/bin/python benchmarks/soak.py --minutes 3 --clients 12 --hostile 5
    .venv/bin/python benchmarks/soak.py --minutes 3 --hostile 1 --attacks vanish
"""

from __future__ import annotations

import argparse
import signal
import sys
from functools import partial
from typing import NoReturn

import machine
from child import ChildFailed
from soak_bed.report import SEND, Reached, figures, lines, to_json
from soak_bed.run import run
from soak_bed.scenario import ATTACKS, CLIENT_ATTACKS, Slice, roster, slices

from mininet_topos.ending import end_in_order
from mininet_topos.errors import LabError

DONE, FAILED, WRONG_USE, INTERRUPTED, TERMINATED = 0, 1, 2, 130, 143


def progress(reached: Reached, part: Slice, seconds: float) -> None:
    """Overwrite the line of progress on a terminal, or print a new one each half minute elsewhere."""
    terminal = sys.stderr.isatty()
    if not terminal and round(seconds * 4) % 120:
        return
    recent = figures([call for call in reached.calls[-500:] if call.kind != SEND])
    line = f"{seconds / 60:5.1f} min | {part.phase} | {recent.completed} of the last {recent.due} calls"
    line += f" | {reached.intact} files intact, {len(reached.wrong)} wrong"
    sys.stderr.write(f"\r\x1b[K{line}" if terminal else f"{line}\n")
    sys.stderr.flush()


def main() -> int:
    """Run it and print the report; return the exit status."""
    options = _parser().parse_args()
    try:
        if options.minutes < 0.5:
            raise ValueError(f"--minutes must be at least 0.5, not {options.minutes:g}")
        clients = roster(options.clients, options.hostile, options.attacks.split(","))
    except ValueError as wrong:
        sys.stderr.write(f"soak: {wrong}\n")
        return WRONG_USE
    reached = Reached(clients, slices(options.minutes))
    end_in_order(TERMINATED)
    signal.signal(signal.SIGINT, _interrupt)
    try:
        run(reached, partial(progress, reached))
    except KeyboardInterrupt:
        reached.interrupted = True
    except (LabError, ChildFailed, TimeoutError) as error:
        reached.differences.append(str(error))
    machine.show(options.json, to_json(reached), lines(reached))
    if reached.interrupted:
        return INTERRUPTED
    return FAILED if reached.failures else DONE


def _interrupt(_number: int, _frame: object) -> NoReturn:
    """Interrupt once: a second Ctrl-C must not stop the removal of the lab."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    attacks = "\n".join(f"  {name:<9}{what}" for name, what in ATTACKS.items())
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=f"attacks:\n{attacks}", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60.0, help="baseline and soak together (default: 60)")
    parser.add_argument("--clients", type=int, default=50, help="in all (default: 50)")
    parser.add_argument("--hostile", type=int, default=5, help="hostile ones of them (default: 5)")
    parser.add_argument("--attacks", default=",".join(CLIENT_ATTACKS), metavar="NAME,…", help="taken in turn (all)")
    parser.add_argument("--json", action="store_true", help="print JSON, with every sample")
    return parser


if __name__ == "__main__":
    sys.exit(main())
