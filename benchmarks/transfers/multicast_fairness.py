"""Claims about the transport `multicast` beside CUBIC flows on one bottleneck.

Beside one flow a session takes 0.5 to 1.5 of a flow's share; beside ten the index of Jain is at least 0.9. In every
window of 5 s, each TCP flow has at least 0.3 of its fair share. The first 10 s do not count.

The sender is behind a link with a queue; all flows pass it to receivers in another rack. Packets from the receivers are
delayed by the round trip. As root:

    .venv/bin/python benchmarks/transfers/multicast_fairness.py                       # a quarter of an hour
    .venv/bin/python benchmarks/transfers/multicast_fairness.py --seconds 30 --repeats 1 --flows 1 --round-trips 20

Exit status 2 if a transfer fails; shares do not change it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.transfers.bed import script
from benchmarks.transfers.bed.bed import SENDER, Bed, Plan, distant
from benchmarks.transfers.bed.failures import PrerequisiteError, RunFailedError
from benchmarks.transfers.bed.program import Program
from benchmarks.transfers.bed.programs import HERE
from benchmarks.transfers.bed.run import Run, opened
from benchmarks.transfers.bed.shape import MTU, Shape
from benchmarks.transfers.bed.tools.blast import BlastMulticast
from blast_transport.wire.datagram import segment_size_for, wire_bytes

RECEIVERS = 4
RATE_MBPS, QUEUE_MS = 50.0, 40
FLOWS, ROUND_TRIPS = (1, 10), (2.0, 20.0)
SECONDS, REPEATS, SETTLING = 60, 5, 10.0
WINDOW_SECONDS = 5.0
MIN_SHARE, MAX_SHARE, MIN_JAIN, MIN_WINDOW = 0.5, 1.5, 0.9, 0.3
_FIRST_PORT = 7100
_PAYLOAD = segment_size_for(MTU) / wire_bytes(segment_size_for(MTU))
_GRACE_SECONDS, _LOOK_SECONDS = 30.0, 0.1
_FLOW = [sys.executable, str(HERE / "tcp_flow.py")]

Series = list[tuple[float, int]]
"""Times, and the bytes until then."""


@dataclass(frozen=True)
class Shares:
    """Goodput of all flows as shares of equal parts, the session first; and the least share of TCP in a window."""

    shares: tuple[float, ...]
    window: float

    @property
    def jain(self) -> float:
        """The fairness index of Jain: 1 if all are equal."""
        return sum(self.shares) ** 2 / (len(self.shares) * sum(share**2 for share in self.shares))


def main() -> bool:
    """Measure and print; return true, because a failed transfer raises."""
    args = _arguments()
    seconds = args.seconds + SETTLING
    size = int(RATE_MBPS * 1e6 / 8 * (seconds + _GRACE_SECONDS))
    racks = ((SENDER,), tuple(range(1, RECEIVERS + 1)))
    plan = Plan(RECEIVERS, racks=racks, uplinks=Shape(RATE_MBPS, latency_ms=QUEUE_MS), light=False)
    results: dict[str, list[Shares]] = {}
    with script.bed_and_file(plan, size) as (bed, source):
        cells = {f"{flows} flows, {trip:g} ms": (flows, trip) for trip in args.round_trips for flows in args.flows}
        for _, name in script.runs(cells, args.repeats):
            flows, trip = cells[name]
            with distant(bed, trip):
                results.setdefault(name, []).append(_measure(bed, source, flows, seconds))
    rows = [_row(name, runs) for name, runs in results.items()]
    machine.show(args.json, {"rows": rows}, list(map(_line, rows)))
    return True


def _arguments() -> argparse.Namespace:
    parser = machine.parser(__doc__)
    parser.add_argument("--seconds", type=script.count, default=SECONDS, help=f"that count (default: {SECONDS})")
    parser.add_argument("--repeats", type=script.count, default=REPEATS, help=f"runs of a cell (default: {REPEATS})")
    parser.add_argument("--flows", type=script.count, nargs="+", default=FLOWS, help="CUBIC flows (default: 1 10)")
    parser.add_argument(
        "--round-trips", type=float, nargs="+", default=ROUND_TRIPS, metavar="MS", help="in ms (default: 2 20)"
    )
    return parser.parse_args()


def _measure(bed: Bed, source: Path, flows: int, seconds: float) -> Shares:
    with opened(bed, source) as run:
        try:
            return _observe(run, flows, seconds)
        except RunFailedError as failure:
            raise PrerequisiteError(f"the transfer failed: {failure}") from failure


def _observe(run: Run, flows: int, seconds: float) -> Shares:
    tool, last = BlastMulticast(), run.receivers[-1]
    tool.prepare(run)
    run.begin(seconds + _GRACE_SECONDS)
    receivers = [_receive(run, 1 + number % (RECEIVERS - 1), number) for number in range(flows)]
    sender = tool.start_sender(run)
    for number in range(flows):
        address = run.bed.packet_address(1 + number % (RECEIVERS - 1))
        run.start_sender(f"flow{number}", [*_FLOW, "send", address, str(_FIRST_PORT + number), "cubic"])
    end = run.started + seconds
    session: Series = []
    # The last receiver has no TCP flow.
    while (now := time.monotonic()) < end:
        session.append((now, int(run.bed.received_bytes(last) * _PAYLOAD)))
        time.sleep(_LOOK_SECONDS)
    if sender.status is not None:
        raise RunFailedError("the session ended before the flows: give it a larger file")
    tcp = [list(_series(program, end)) for program in receivers]
    return _shares([session, *tcp], run.started + SETTLING, end)


def _receive(run: Run, host: int, number: int) -> Program:
    command = [*_FLOW, "receive", run.bed.packet_address(host), str(_FIRST_PORT + number)]
    program = run.start(host, f"sink{number}", command)
    program.await_line("ready", run.deadline)
    return program


def _series(program: Program, end: float) -> Iterator[tuple[float, int]]:
    while True:
        _, line = program.next_line(end + _GRACE_SECONDS)
        moment, count = line.split()
        yield float(moment), int(count)
        if float(moment) >= end:
            return


def _shares(series: Sequence[Series], begin: float, end: float) -> Shares:
    rates = [_rate(one, begin, end) for one in series]
    fair = sum(rates) / len(rates)
    windows = [begin + WINDOW_SECONDS * number for number in range(int((end - begin) / WINDOW_SECONDS))]
    min_rate = min(_rate(one, at, at + WINDOW_SECONDS) for one in series[1:] for at in windows)
    return Shares(tuple(rate / fair for rate in rates), min_rate / fair)


def _rate(series: Series, begin: float, end: float) -> float:
    """Return bytes per second between two times, from the lines that are next to them."""
    first = min(series, key=lambda line: abs(line[0] - begin))
    last = min(series, key=lambda line: abs(line[0] - end))
    return (last[1] - first[1]) / (last[0] - first[0])


def _row(name: str, runs: Sequence[Shares]) -> dict[str, Any]:
    shares = [run.shares[0] for run in runs]
    row: dict[str, Any] = {
        "cell": name,
        "shares": [round(share, 3) for share in shares],
        "share": statistics.median(shares),
        "jain": min(run.jain for run in runs),
        "window": min(run.window for run in runs),
    }
    kept = all(MIN_SHARE <= share <= MAX_SHARE for share in shares) and row["window"] >= MIN_WINDOW
    return {**row, "kept": kept and (len(runs[0].shares) == 2 or row["jain"] >= MIN_JAIN)}


def _line(row: dict[str, Any]) -> str:
    return (
        f"{row['cell']:<18} session {row['share']:.2f} of a share ({min(row['shares']):.2f}-{max(row['shares']):.2f}), "
        f"Jain {row['jain']:.3f}, TCP in 5 s at least {row['window']:.2f}{'' if row['kept'] else '  MISSED'}"
    )


if __name__ == "__main__":
    script.run(main)
