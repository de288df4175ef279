"""Claims: when one of seven receivers fails during a transfer, the others receive the correct file.

They receive it at most 0.5 s later if the failed receiver is killed (-9), 2 s later if it is stopped (SIGSTOP: its
kernel still accepts connections), and at >= 0.9 of their rate if its store is throttled to a tenth. A receiver that is
stopped before it answers costs 0.5 s, and two adjacent ones cost as much as one. The report names exactly the failed
receivers.

Faults strike with each transport, at 400 Mbit/s, when the first victim has received half of the file; also the last
node of the pipeline, and two adjacent nodes. All cases alternate with transfers without a fault. The library
`bed/programs/slow_store.c`, preloaded into the receiver, emulates the slow store. As root:

    .venv/bin/python benchmarks/transfers/faults.py                                    # about a quarter of an hour
    .venv/bin/python benchmarks/transfers/faults.py --megabytes 40 --repeats 1 --transports pipeline --faults kill:4

Exit status 1 if a file, a report or the sender's status is wrong; times and rates do not change the exit status.
"""

from __future__ import annotations

import argparse
import signal
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.transfers.bed import script
from benchmarks.transfers.bed.bed import Bed, Plan
from benchmarks.transfers.bed.programs import compile_into
from benchmarks.transfers.bed.shape import Shape
from benchmarks.transfers.bed.struck import Struck, at_half, at_moments, signaling, struck_transfer
from benchmarks.transfers.bed.tools import TOOLS
from benchmarks.transfers.bed.tools.blast import Blast

RECEIVERS = 7
SHAPE = Shape(400.0)
FAULTS = "kill:4,kill:7,kill:4+5,stop:4,stop:4+5,silent:4,slow:4"
TRANSPORTS = "optical,pipeline"
BARS = {"kill": 0.5, "stop": 2.0, "silent": 0.5}
"""The maximum seconds that a fault may add."""
SLOW_BAR, THROTTLED_TO = 0.9, 0.1
_LIMIT_SECONDS = 120.0


@dataclass(frozen=True)
class Fault:
    """A kind of fault (`kill`, `stop`, `silent` from the start, `slow`, or `none`) and its victims."""

    kind: str
    victims: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """The fault as written in the option `--faults`."""
        return f"{self.kind}:{'+'.join(map(str, self.victims))}" if self.victims else self.kind


def main() -> bool:
    """Measure and print; return whether all files and reports are correct."""
    args = _arguments()
    cases = [(transport, fault) for transport in args.transports for fault in (Fault("none"), *args.faults)]
    with script.bed_and_file(Plan(RECEIVERS, SHAPE), args.megabytes * 1_000_000) as (bed, source):
        library = compile_into(source.parent, "slow_store")
        measures: dict[str, Callable[[], Struck]] = {
            f"{transport} {fault.name}": partial(_measure, transport, fault, bed, source, library)
            for transport, fault in cases
        }
        results = script.alternate(measures, args.repeats)
    rows: list[dict[str, Any]] = []
    for transport, fault in cases:
        undisturbed = next((row["seconds"] for row in rows if row["transport"] == transport), None)
        rows.append(_row(transport, fault, results[f"{transport} {fault.name}"], undisturbed))
    head = f"{RECEIVERS} receivers, {SHAPE.name}, {args.megabytes} MB, {args.repeats} repeats, medians (min-max)"
    columns = f"{'transport':<10}{'fault':<10}{'others complete, s':>26}{'sender ends, s':>16}   against no fault"
    machine.show(args.json, {"megabytes": args.megabytes, "rows": rows}, [head, columns, *map(_line, rows)])
    return not any(row["wrong"] for row in rows)


def _measure(transport: str, fault: Fault, bed: Bed, source: Path, slow_store: Path) -> Struck:
    tool = TOOLS[transport]()
    assert isinstance(tool, Blast)
    assert SHAPE.udp_limit is not None
    slowest = SHAPE.udp_limit / 8 * THROTTLED_TO
    limit = _LIMIT_SECONDS + (source.stat().st_size / slowest if fault.kind == "slow" else 0.0)
    transfer = partial(struck_transfer, tool, bed, source, limit_seconds=limit, victims=fault.victims)
    match fault.kind:
        case "kill" | "stop":
            number = signal.SIGKILL if fault.kind == "kill" else signal.SIGSTOP
            return transfer(strike=at_half(fault.victims, number))
        case "silent":
            return transfer(strike=at_moments([(0.0, fault.victims)], signaling(signal.SIGSTOP)))
        case "slow":
            preload = {"LD_PRELOAD": str(slow_store), "SLOW_BYTES_PER_SECOND": f"{slowest:.0f}"}
            tool.environments = dict.fromkeys(fault.victims, preload)
            return transfer(all_victims_fail=False)
        case _:
            return transfer()


def _row(transport: str, fault: Fault, runs: Sequence[Struck], undisturbed: float | None) -> dict[str, Any]:
    times = [run.others_seconds for run in runs]
    seconds = statistics.median(times)
    wrong = sorted({sentence for run in runs for sentence in run.wrong})
    row = {
        "transport": transport,
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


def _line(row: dict[str, Any]) -> str:
    low, high = row["spread"]
    times = f"{row['seconds']:.2f} ({low:.2f}-{high:.2f})"
    start = f"{row['transport']:<10}{row['fault']:<10}{times:>26}{row['sender_seconds']:>16.2f}   {row['words']}"
    return "\n    wrong: ".join([f"{start}{'' if row['kept'] else '  MISSED'}", *row["wrong"]])


def _arguments() -> argparse.Namespace:
    parser = script.parser(__doc__, megabytes=200, repeats=3)
    transports = script.some_of(("optical", "pipeline", "unicast"))
    names = f"transports, separated by commas (default: {TRANSPORTS})"
    parser.add_argument("--transports", type=transports, default=TRANSPORTS.split(","), help=names)
    faults = f"faults KIND:HOST+HOST, separated by commas (default: {FAULTS})"
    parser.add_argument("--faults", type=_faults, default=_faults(FAULTS), help=faults)
    return parser.parse_args()


def _faults(text: str) -> list[Fault]:
    faults = []
    for part in text.split(","):
        kind, _, hosts = part.partition(":")
        victims = tuple(int(host) for host in hosts.split("+") if host.isdecimal())
        if kind not in {*BARS, "slow"} or not victims or not set(victims) <= set(range(1, RECEIVERS + 1)):
            known = f"kill, stop, silent or slow, and :HOST of 1 to {RECEIVERS}"
            raise argparse.ArgumentTypeError(f"{part!r} is not {known}")
        faults.append(Fault(kind, victims))
    return faults


if __name__ == "__main__":
    script.run(main)
