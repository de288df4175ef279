"""Claim: a lab serves honest clients during attacks, and ends without a wrong file or a leaked resource.

The lab has Open vSwitch, the emulated OCS over TL1, agents, and the real controller with TLS, tokens and a journal on
disk. Honest clients submit requests, read, and send files; hostile clients attack at fixed rates. Baseline slices
without hostile clients alternate with soak slices, so that their p99 are comparable.

Exit status 1 for a file with another SHA-256, a difference between journal, flow tables and cross-connects at the end,
a controller that exits by itself, or a leak: processes, interfaces, bridges, descriptors, light trees. Times do not
change the exit status. Ctrl-C prints the partial results and removes the lab (130). As root, on an idle machine:

    .venv/bin/python benchmarks/transfers/soak.py --minutes 60 --json > soak.json
    .venv/bin/python benchmarks/transfers/soak.py --minutes 3 --clients 12 --hostile 5
    .venv/bin/python benchmarks/transfers/soak.py --minutes 3 --hostile 1 --attacks vanish
"""

from __future__ import annotations

import argparse
import signal
import sys
from functools import partial
from typing import NoReturn

from benchmarks import machine
from benchmarks.control_plane.child import ChildFailedError
from benchmarks.transfers.soak_bed.report import SEND, Reached, figures, lines, to_json
from benchmarks.transfers.soak_bed.run import run
from benchmarks.transfers.soak_bed.scenario import ATTACKS, CLIENT_ATTACKS, Slice, roster, slices
from mininet_topos.kernel.errors import LabError
from mininet_topos.kernel.termination import end_in_order

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
    """Run the soak and print the report; return the exit status."""
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
    except (LabError, ChildFailedError, TimeoutError) as error:
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
    attacks = "\n".join(f"  {name:<9}{text}" for name, text in ATTACKS.items())
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=f"attacks:\n{attacks}", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60.0, help="duration of baseline and soak (default: 60)")
    parser.add_argument("--clients", type=int, default=50, help="number of all clients (default: 50)")
    parser.add_argument("--hostile", type=int, default=5, help="number of hostile clients (default: 5)")
    names = "attacks, assigned to the hostile clients in rotation (default: all)"
    parser.add_argument("--attacks", default=",".join(CLIENT_ATTACKS), metavar="NAME,…", help=names)
    parser.add_argument("--json", action="store_true", help="print JSON, with every sample")
    return parser


if __name__ == "__main__":
    sys.exit(main())
