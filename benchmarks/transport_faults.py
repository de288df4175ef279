"""Claims: whatever happens to one of seven receivers in mid-transfer, the others get the file byte for byte: at most
0.5 s later when it is killed (-9), 2 s later when it is stopped (SIGSTOP: its kernel still accepts connections), and at
>= 0.9 of their rate when its store is throttled to a tenth. One that is stopped before it can answer at the start costs
0.5 s, and two adjacent ones what one does. The report names exactly those that failed.

With each carrier, at 400 Mbit/s, struck when half of the file has reached the first victim; also the last node of the
pipeline and two adjacent ones. All of it in turn with transfers to which nothing happens. As root:

    .venv/bin/python benchmarks/transport_faults.py                                    # about a quarter of an hour
    .venv/bin/python benchmarks/transport_faults.py --megabytes 40 --repeats 1 --carriers pipeline --faults kill:4

The throttled store is `transport_bed/programs/slow_store.c`, preloaded into that receiver. Exit status 1 if a
receiver did not come to the end that it must; the bars are of times and rates, which are told and decide nothing.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import machine
from transport_bed import script
from transport_bed.bed import Bed, Plan
from transport_bed.programs import compile_into
from transport_bed.shape import Shape
from transport_bed.struck import Struck, at_half, at_times, struck_transfer
from transport_bed.tools import TOOLS
from transport_bed.tools.blast import Blast

RECEIVERS = 7
SHAPE = Shape(400.0)
FAULTS = "kill:4,kill:7,kill:4+5,stop:4,stop:4+5,silent:4,slow:4"
CARRIERS = "optical,pipeline"
BARS = {"kill": 0.5, "stop": 2.0, "silent": 0.5}
"""Seconds added at most."""
SLOW_BAR = 0.9
THROTTLED_TO = 0.1
_LIMIT_SECONDS = 120.0
"""Beyond what the slowest receiver needs."""


@dataclass(frozen=True)
class Fault:
    """What happens (`kill`, `stop`, `silent` from the start, `slow`, or `none`) to which receivers."""

    kind: str
    victims: tuple[int, ...]

    @property
    def name(self) -> str:
        """As in the option."""
        return f"{self.kind}:{'+'.join(map(str, self.victims))}" if self.victims else self.kind


NO_FAULT = Fault("none", ())


def main() -> bool:
    """Measure and print; whether every receiver came to the end that it must."""
    args = _arguments()
    size = args.megabytes * 1_000_000
    names = [(carrier, fault) for carrier in args.carriers for fault in (NO_FAULT, *args.faults)]
    with script.bed_and_file(Plan(RECEIVERS, SHAPE), size) as (bed, source):
        library = compile_into(source.parent, "slow_store")
        measures: dict[str, Callable[[], Struck]] = {
            f"{carrier} {fault.name}": partial(_measure, carrier, fault, bed, source, library)
            for carrier, fault in names
        }
        results = script.in_turn(measures, args.repeats)
    rows: list[dict[str, Any]] = []
    for carrier, fault in names:
        undisturbed = next((row["seconds"] for row in rows if row["carrier"] == carrier), None)
        rows.append(_row(carrier, fault, results[f"{carrier} {fault.name}"], undisturbed))
    if args.json:
        print(json.dumps({"machine": machine.describe(), "megabytes": args.megabytes, "rows": rows}, indent=2))
    else:
        print(machine.describe())
        print(f"{RECEIVERS} receivers, {SHAPE.name}, {args.megabytes} MB, {args.repeats} repeats, medians (min-max)")
        print("\n".join(_table(rows)))
    return not any(row["wrong"] for row in rows)


def _measure(carrier: str, fault: Fault, bed: Bed, source: Path, slow_store: Path) -> Struck:
    tool = TOOLS[carrier]()
    assert isinstance(tool, Blast)
    assert SHAPE.udp_limit is not None
    slowest = SHAPE.udp_limit / 8 * THROTTLED_TO
    limit = _LIMIT_SECONDS + (source.stat().st_size / slowest if fault.kind == "slow" else 0.0)
    strike = partial(struck_transfer, tool, bed, source, limit_seconds=limit, victims=fault.victims)
    match fault.kind:
        case "kill":
            return strike(strike=at_half(fault.victims, signal.SIGKILL))
        case "stop":
            return strike(strike=at_half(fault.victims, signal.SIGSTOP))
        case "silent":
            return strike(strike=at_times([(0.0, fault.victims)], signal.SIGSTOP))
        case "slow":
            share = {"SLOW_BYTES_PER_SECOND": f"{slowest:.0f}"}
            tool.environments = {victim: {"LD_PRELOAD": str(slow_store), **share} for victim in fault.victims}
            return strike(all_victims_fail=False)
        case _:
            return strike()


def _row(carrier: str, fault: Fault, runs: Sequence[Struck], undisturbed: float | None) -> dict[str, Any]:
    times = [run.others_seconds for run in runs]
    seconds = statistics.median(times)
    wrong = sorted({sentence for run in runs for sentence in run.wrong})
    row = {
        "carrier": carrier,
        "fault": fault.name,
        "seconds": seconds,
        "spread": [min(times), max(times)],
        "sender_seconds": statistics.median(run.sender_seconds for run in runs),
        "wrong": wrong,
        "kept": not wrong,
        "words": "",
    }
    if undisturbed is None:
        return row
    added, share = seconds - undisturbed, undisturbed / seconds
    if fault.kind == "slow":
        words = f"{share:.2f} of the rate, bar {SLOW_BAR:g}"
        return {**row, "share": share, "words": words, "kept": not wrong and share >= SLOW_BAR}
    bar = BARS[fault.kind]
    return {**row, "added": added, "words": f"{added:+.2f} s, bar {bar:g}", "kept": not wrong and added <= bar}


def _table(rows: Sequence[dict[str, Any]]) -> list[str]:
    lines = [f"{'carrier':<10}{'fault':<10}{'others have it, s':>26}{'sender ends, s':>16}   against no fault"]
    for row in rows:
        low, high = row["spread"]
        times = f"{row['seconds']:.2f} ({low:.2f}-{high:.2f})"
        kept = "" if row["kept"] else "  MISSED"
        start = f"{row['carrier']:<10}{row['fault']:<10}{times:>26}{row['sender_seconds']:>16.2f}"
        lines.append(f"{start}   {row['words']}{kept}")
        lines += [f"    wrong: {sentence}" for sentence in row["wrong"]]
    return lines


def _arguments() -> argparse.Namespace:
    parser = script.parser(__doc__, megabytes=200, repeats=3)
    carriers = script.some_of(("optical", "pipeline", "unicast"))
    parser.add_argument("--carriers", type=carriers, default=CARRIERS.split(","), help=f"(default: {CARRIERS})")
    parser.add_argument("--faults", type=_faults, default=_faults(FAULTS), help=f"KIND:HOST+HOST,… (default: {FAULTS})")
    return parser.parse_args()


def _faults(text: str) -> list[Fault]:
    faults = []
    for part in text.split(","):
        kind, _, hosts = part.partition(":")
        victims = tuple(int(host) for host in hosts.split("+") if host.isdecimal())
        if kind not in {*BARS, "slow"} or not victims or not set(victims) <= set(range(1, RECEIVERS + 1)):
            raise argparse.ArgumentTypeError(
                f"{part!r} is none of kill, stop, silent and slow, and :HOST of 1 to {RECEIVERS}"
            )
        faults.append(Fault(kind, victims))
    return faults


if __name__ == "__main__":
    script.run(main)
