"""Claim: when light is withdrawn in the middle of a transfer, it goes on along the pipeline, and the sender has sent
nothing twice beyond one window. Shown beside it: light that is granted in the middle of a transfer along the pipeline.

Seven receivers at 400 Mbit/s. When half of the file has arrived, the optical switch goes dark and the sender is told,
in this order, or is lit and told. The sender's extra bytes are those by light (datagrams × 1456) and by packets (of its
interface, with all headers, control and repairs), less the file; sent twice is what is above the extra bytes of
transfers by one carrier alone. As root:

    .venv/bin/python benchmarks/light_withdrawn.py                         # a minute

Exit status 1 if the bar is missed.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import machine
from transport_bed import script
from transport_bed.bed import SENDER, Bed, Plan
from transport_bed.programs import HERE
from transport_bed.shape import Shape
from transport_bed.struck import Struck, nothing, struck_transfer
from transport_bed.tools.blast import GROUP, GROUP_PORT, Blast, BlastOptical, granted_mbps, secret_file

from blast_transport.carriers.choices import QUEUE_BYTES

if TYPE_CHECKING:
    from transport_bed.program import Program
    from transport_bed.run import Run

RECEIVERS = 7
SHAPE = Shape(400.0)
ALL_LIGHT, ALL_PIPELINE = "light all the time", "pipeline all the time"
WITHDRAWN, GRANTED = "light withdrawn in the middle", "light granted in the middle"
BAR = 1.0
"""Windows, when light is withdrawn."""
SEGMENT = 1456
_LIMIT_SECONDS = 120.0


class Changing(BlastOptical):
    """Begins by one carrier, and goes on by the other when it is told a line."""

    def __init__(self, first: str) -> None:
        super().__init__()
        self._first = first
        self.sender: Program | None = None

    def start_sender(self, run: Run) -> Program:
        """Our own, as changing is for the controller's clients and has no command."""
        light = [run.bed.light_address(SENDER), f"{GROUP}:{GROUP_PORT}", f"{granted_mbps(run):g}"]
        program = [sys.executable, str(HERE / "changing_sender.py")]
        self.sender = run.start_sender(
            self.name, [*program, run.source, self.addresses(run), *light, self._first, secret_file(run)]
        )
        return self.sender

    def change(self) -> None:
        """Tell it."""
        assert self.sender is not None
        self.sender.tell("change")


def main() -> bool:
    """Measure and print; whether the bar was kept."""
    args = script.parser(__doc__, megabytes=200, repeats=3).parse_args()
    with script.bed_and_file(Plan(RECEIVERS, SHAPE), args.megabytes * 1_000_000) as (bed, source):
        measures: dict[str, Callable[[], tuple[Struck, float]]] = {
            ALL_LIGHT: partial(_measure, bed, source, "optical", changes=False),
            WITHDRAWN: partial(_measure, bed, source, "optical", changes=True),
            ALL_PIPELINE: partial(_measure, bed, source, "pipeline", changes=False),
            GRANTED: partial(_measure, bed, source, "pipeline", changes=True),
        }
        results = script.in_turn(measures, args.repeats)
    alone = max(statistics.median(extra for _, extra in results[name]) for name in (ALL_LIGHT, ALL_PIPELINE))
    rows = [_row(name, runs, alone) for name, runs in results.items()]
    if args.json:
        print(json.dumps({"machine": machine.describe(), "megabytes": args.megabytes, "rows": rows}, indent=2))
    else:
        print(machine.describe())
        print(f"{RECEIVERS} receivers, {SHAPE.name}, {args.megabytes} MB, {args.repeats} repeats, medians (min-max)")
        print(f"a window is {QUEUE_BYTES} bytes")
        print("\n".join(map(_line, rows)))
    return all(row["kept"] for row in rows)


def _measure(bed: Bed, source: Path, first: str, *, changes: bool) -> tuple[Struck, float]:
    """A transfer, and the sender's extra bytes in windows."""
    tool = Changing(first)
    if first == "pipeline" and changes:
        bed.withdraw_light()
    before = bed.packet_bytes(SENDER)
    strike = partial(_withdraw, first) if changes else nothing
    try:
        struck = struck_transfer(tool, bed, source, limit_seconds=_LIMIT_SECONDS, strike=strike)
    finally:
        if changes and first == "optical":
            bed.grant_light()
    carriers = struck.report.get("carriers", [])
    if changes and len(carriers) < 2:
        struck = replace(struck, wrong=(*struck.wrong, f"only one carrier was used: {carriers}"))
    sent = struck.report.get("datagrams", 0) * SEGMENT + bed.packet_bytes(SENDER) - before
    return struck, (sent - source.stat().st_size) / QUEUE_BYTES


def _withdraw(first: str, tool: Blast, run: Run) -> None:
    assert isinstance(tool, Changing)
    middle = RECEIVERS // 2 + 1
    run.await_bytes(middle, run.bed.received_bytes(middle) + run.size / 2)
    if first == "optical":
        run.bed.withdraw_light()
    else:
        run.bed.grant_light()
    tool.change()


def _row(name: str, runs: Sequence[tuple[Struck, float]], alone: float) -> dict[str, Any]:
    times = [run.others_seconds for run, _ in runs]
    twice = max(extra for _, extra in runs) - alone
    wrong = sorted({sentence for run, _ in runs for sentence in run.wrong})
    return {
        "what": name,
        "seconds": statistics.median(times),
        "spread": [min(times), max(times)],
        "windows_twice": twice,
        "carriers": runs[-1][0].report.get("carriers"),
        "wrong": wrong,
        "kept": not wrong and (name != WITHDRAWN or twice <= BAR),
    }


def _line(row: dict[str, Any]) -> str:
    low, high = row["spread"]
    bar = f", bar {BAR:g}{'' if row['kept'] else '  MISSED'}" if row["what"] == WITHDRAWN else ""
    twice = f"   sent twice at most {row['windows_twice']:.2f} windows" if row["what"] in {WITHDRAWN, GRANTED} else ""
    wrong = "".join(f"\n    wrong: {sentence}" for sentence in row["wrong"])
    return f"{row['what']:<32}{row['seconds']:>8.2f} s ({low:.2f}-{high:.2f}){twice}{bar}{wrong}"


if __name__ == "__main__":
    script.run(main)
