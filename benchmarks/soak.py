"""Soak: honest and hostile clients at a real lab, and at its end everything must be as it should be.

Mininet, Open vSwitch, the emulated optical switch over TL1, and the real controller with TLS, tokens and a journal on
disk, with agents on the transfers' hosts. Honest clients ask for light and give it back, look on, and send files by
`blast send`; hostile ones flood, send half frames, vanish, extend without end, look at everything, forge datagrams into
the groups of running transfers, and throw garbage at ports. Their rates are fixed and printed.

Baseline and soak alternate within one run: in the baseline's slices the same honest load meets no hostile client, but a
process that burns as much of a processor as these were measured to use, when they did: what comes in bursts competes
otherwise than what is even. So the ratio of the two p99 is paired.

Exit status 1 for a file whose SHA-256 is not the original's, a difference between journal, flow tables and
cross-connects at the end (each is read by itself), a controller that ended by itself, or anything left behind:
processes, interfaces, bridges, descriptors, light. Times and shares are printed beside their bars and decide nothing.
Ctrl-C prints what was reached and leaves nothing behind (130).
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from typing import NoReturn

import machine
from child import ChildFailed
from soak.latencies import SEND, figures
from soak.reached import Reached
from soak.report import lines, to_json
from soak.roster import ATTACKS, INTRUSIONS, Roster, roster
from soak.run import run
from soak.schedule import Slice, slices

from mininet_topos.ending import end_in_order
from mininet_topos.errors import LabError

DONE, FAILED, WRONG_USE, INTERRUPTED, TERMINATED = 0, 1, 2, 130, 143
LEAST_MINUTES = 0.5
_QUIET_SECONDS = 30.0
"""Between two lines of progress where nobody looks at a terminal."""
_EXAMPLE = """\
as root, with nothing else running:
  .venv/bin/python benchmarks/soak.py --minutes 60 --json > soak.json
  .venv/bin/python benchmarks/soak.py --minutes 3 --clients 12 --hostile 5
  .venv/bin/python benchmarks/soak.py --minutes 3 --hostile 1 --attacks vanish       (what one attack does by itself)
"""


class ProgressLine:
    """One line on standard error that says how far it is: rewritten on a terminal, now and then a new one elsewhere."""

    def __init__(self, reached: Reached) -> None:
        self._reached = reached
        self._last = 0.0
        self._total = sum(part.seconds for part in reached.plan) / 60

    def __call__(self, part: Slice, seconds: float) -> None:
        """Say where it is."""
        terminal = sys.stderr.isatty()
        if time.monotonic() - self._last < (1.0 if terminal else _QUIET_SECONDS):
            return
        self._last = time.monotonic()
        sys.stderr.write(("\r\x1b[K" if terminal else "") + self._line(part, seconds) + ("" if terminal else "\n"))
        sys.stderr.flush()

    def _line(self, part: Slice, seconds: float) -> str:
        reached = self._reached
        recent = figures([call for call in reached.calls[-500:] if call.kind != SEND])
        held = reached.samples[-1].controller if reached.samples else None
        words = [f"{seconds / 60:5.1f} of {self._total:g} min and pauses", part.phase]
        words.append(f"{recent.completed} of the last {recent.due} calls")
        words += [f"p99 {recent.p99 * 1000:.0f} ms"] if recent.p99 else []
        words.append(f"{reached.intact} files intact, {len(reached.wrong)} wrong")
        words += [f"controller {held.rss >> 20} MiB, {held.descriptors} descriptors"] if held else []
        return " | ".join(words)


def main(arguments: list[str] | None = None) -> int:
    """Run it; the exit status."""
    options = _parser().parse_args(arguments)
    try:
        reached = Reached(_roster(options), slices(options.minutes))
    except ValueError as wrong:
        sys.stderr.write(f"soak: {wrong}\n")
        return WRONG_USE
    end_in_order(TERMINATED)
    signal.signal(signal.SIGINT, _interrupt)
    try:
        run(reached, ProgressLine(reached))
    except KeyboardInterrupt:
        reached.interrupted = True
    except (LabError, ChildFailed) as error:
        reached.differences.append(str(error))
    sys.stderr.write("\n" if sys.stderr.isatty() else "")
    _tell(reached, as_json=options.json)
    if reached.interrupted:
        return INTERRUPTED
    return FAILED if reached.failures else DONE


def _interrupt(_number: int, _frame: object) -> NoReturn:
    """Once, wherever it was started from: a second one must not stop the removal that the first began."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def _tell(reached: Reached, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"machine": machine.describe(), **to_json(reached)}, indent=1))
    else:
        print(machine.describe())
        print("\n".join(lines(reached)))


def _roster(options: argparse.Namespace) -> Roster:
    """Raises ValueError for what cannot be."""
    if options.minutes < LEAST_MINUTES:
        raise ValueError(f"{options.minutes:g} minutes are too few to say anything: at least {LEAST_MINUTES:g}")
    return roster(options.clients, options.hostile, options.attacks.split(","))


def _parser() -> argparse.ArgumentParser:
    attacks = "\n".join(f"  {name:<9}{what}" for name, what in {**ATTACKS, **INTRUSIONS}.items())
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog=f"hostile clients:\n{attacks}\n\n{_EXAMPLE}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=60.0, help="baseline and soak together (60)")
    parser.add_argument("--clients", type=int, default=50, help="in all (50)")
    parser.add_argument("--hostile", type=int, default=5, help="of them (5); 0: nobody forges or throws either")
    parser.add_argument("--attacks", default=",".join(ATTACKS), metavar="NAME,…", help="what they do, in turn (all)")
    parser.add_argument("--json", action="store_true", help="print JSON, every sample included")
    return parser


if __name__ == "__main__":
    sys.exit(main())
