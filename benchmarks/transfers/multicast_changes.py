"""Claims about the transport `multicast` on a bottleneck that changes while a session passes it.

| scenario | change | bar |
|---|---|---|
| halves | the bottleneck has half of its rate, then all of it again | goodput over 1 s fits the new limit within 5 s |
| bursts | all packets are lost for 0.2 s, every 2 s | |
| outage | all packets are lost for 1 s, once | |
| all | | goodput is below 0.1 of the limit for at most 5 s; the transport stays `multicast` |

A run has three parts; the change is in the second. The limit is the payload that the bottleneck carries, and goodput
fits it from 0.8 of it on. Goodput counts the bytes of the file at the receiver that has the fewest, each once.

The kernel's shaper (tbf) limits the rate of the link of the sender's rack: on a busy machine it was within 0.1 % of it
in each second, the relay within 2 %. Behind it the relay delays all packets by the round trip and loses them, one by
one, because the kernel cuts super-packets into packets before the relay. As root:

    .venv/bin/python benchmarks/transfers/multicast_changes.py                     # 20 minutes
    .venv/bin/python benchmarks/transfers/multicast_changes.py --quick             # two minutes

Exit status 2 if a transfer fails; goodput does not change the exit status.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import machine
from benchmarks.transfers.bed import script
from benchmarks.transfers.bed.bed import SENDER, Bed, Plan, RelayOrders, distant_uplink
from benchmarks.transfers.bed.failures import PrerequisiteError, RunFailedError
from benchmarks.transfers.bed.run import Run, opened
from benchmarks.transfers.bed.shape import Shape
from benchmarks.transfers.bed.tools.blast import BlastMulticast

RECEIVERS = 4
_SENDERS_RACK = 0
RATE_MBPS, QUEUE_MS = 50.0, 40
ROUND_TRIPS = (2.0, 20.0)
SECONDS, REPEATS = 20, 3
QUICK_SECONDS, QUICK_REPEATS, QUICK_ROUND_TRIPS = 10, 1, (20.0,)
MIN_SHARE, MAX_SHARE = 0.8, 1.05
"""Goodput that fits the limit. The relay, the bucket of the shaper and repairs exceed the limit for moments."""
MIN_GOODPUT = 0.1
MAX_SECONDS = 5.0
_WINDOW_SECONDS = 1.0
_BUCKET = 1 << 15
"""Bytes that pass at once after a pause: less than 2 % of a window."""
_GRACE_SECONDS, _LOOK_SECONDS = 30.0, 0.1


class BottleneckStep(NamedTuple):
    """A change `at` seconds after the start: the `share` of the rate of the bottleneck, or seconds of a `burst`."""

    at: float
    share: float = 1.0
    burst: float = 0.0


class BottleneckChange(NamedTuple):
    """The share of the rate, and the seconds of bursts and from burst to burst, in the second part of a run."""

    share: float = 1.0
    burst: float = 0.0
    period: float = math.inf

    def steps(self, seconds: float) -> list[BottleneckStep]:
        """Return the steps of a run whose parts have this length."""
        steps, at = [], seconds
        if self.share != 1:
            steps += [BottleneckStep(seconds, self.share), BottleneckStep(2 * seconds)]
        while self.burst and at < 2 * seconds:
            steps.append(BottleneckStep(at, burst=self.burst))
            at += self.period
        return steps


CHANGES = {
    "halves": BottleneckChange(share=0.5),
    "bursts": BottleneckChange(burst=0.2, period=2.0),
    "outage": BottleneckChange(burst=1.0),
}


class GoodputSample(NamedTuple):
    """A time, and the bytes until then: stored by every receiver, and possible on the bottleneck."""

    moment: float
    stored: int
    possible: float


@dataclass(frozen=True)
class Goodput:
    """Goodput of a run: shares of the limit and seconds; the first of a pair is the second part, the other the third.

    `settled`: until goodput fits the limit, None if it never does. `below`: the longest time below MIN_GOODPUT.
    """

    shares: tuple[float, float]
    settled: tuple[float | None, float | None]
    below: float
    lost: int
    transport: str


def main() -> bool:
    """Measure and print; return true, because a failed transfer raises."""
    args = _arguments()
    size = int(RATE_MBPS * 1e6 / 8 * (3 * args.seconds + _GRACE_SECONDS))
    racks = ((SENDER,), tuple(range(1, RECEIVERS + 1)))
    plan = Plan(RECEIVERS, racks=racks, uplinks=_shape(1.0), light=False)
    results: dict[str, list[Goodput]] = {}
    with script.bed_and_file(plan, size) as (bed, source):
        cells = {f"{name}, {trip:g} ms": (name, trip) for trip in args.round_trips for name in args.scenarios}
        for _, cell in script.runs(cells, args.repeats):
            name, trip = cells[cell]
            with distant_uplink(bed, trip) as orders:
                results.setdefault(cell, []).append(_measure(bed, source, orders, CHANGES[name], args.seconds))
    rows = [_row(cell, runs, settles=CHANGES[cells[cell][0]].share != 1) for cell, runs in results.items()]
    machine.show(args.json, {"rows": rows}, list(map(_line, rows)))
    return True


def _arguments() -> argparse.Namespace:
    parser = machine.parser(__doc__)
    parser.add_argument("--seconds", type=script.count, default=SECONDS, help=f"length of a part (default: {SECONDS})")
    parser.add_argument("--repeats", type=script.count, default=REPEATS, help=f"runs of a cell (default: {REPEATS})")
    parser.add_argument(
        "--round-trips", type=float, nargs="+", default=ROUND_TRIPS, metavar="MS", help="in ms (default: 2 20)"
    )
    names = ",".join(CHANGES)
    parser.add_argument("--scenarios", type=script.some_of(CHANGES), default=list(CHANGES), help=f"default: {names}")
    quick = f"parts of {QUICK_SECONDS} s, {QUICK_REPEATS} repeat, {QUICK_ROUND_TRIPS[0]:g} ms"
    parser.add_argument("--quick", action="store_true", help=quick)
    args = parser.parse_args()
    if args.quick:
        args.seconds, args.repeats, args.round_trips = QUICK_SECONDS, QUICK_REPEATS, QUICK_ROUND_TRIPS
    return args


def _shape(share: float) -> Shape:
    # A buffer has the same bytes at each rate.
    return Shape(RATE_MBPS * share, burst=_BUCKET, latency_ms=round(QUEUE_MS / share))


def _measure(bed: Bed, source: Path, orders: RelayOrders, change: BottleneckChange, seconds: float) -> Goodput:
    with opened(bed, source) as run:
        try:
            return _observe(run, orders, change.steps(seconds), seconds)
        except RunFailedError as failure:
            raise PrerequisiteError(f"the transfer failed: {failure}") from failure
        finally:
            bed.shape_uplink(_SENDERS_RACK, _shape(1.0))


def _observe(run: Run, orders: RelayOrders, steps: Sequence[BottleneckStep], seconds: float) -> Goodput:
    tool, remaining, shape = _ReportingMulticast(), list(steps), _shape(1.0)
    tool.prepare(run)
    run.begin(3 * seconds + _GRACE_SECONDS)
    sender = tool.start_sender(run)
    samples = [GoodputSample(run.started, 0, 0.0)]
    while (now := time.monotonic()) < run.started + 3 * seconds:
        limit, after = shape.udp_limit or 0.0, shape
        if remaining and now >= run.started + remaining[0].at:
            after = _take(run.bed, orders, remaining.pop(0))
        now = time.monotonic()
        last = samples[-1]
        samples.append(GoodputSample(now, _stored(run), last.possible + limit / 8 * (now - last.moment)))
        shape = after
        time.sleep(_LOOK_SECONDS)
    if sender.status is not None:
        raise RunFailedError(f"the sender ended too early, with status {sender.status}")
    sender.end()
    frames, lost = orders.give("loss 0")
    if not frames or bool(lost) != any(step.burst for step in steps):
        raise RunFailedError(f"the relay lost {lost} of {frames} packets")
    return goodput(samples, run.started + seconds, seconds, lost, sender.last_json().get("transport", ""))


class _ReportingMulticast(BlastMulticast):  # type: ignore[misc, valid-type]
    """Multicast with a sender that reports the transport."""

    def transport_options(self, run: Run) -> list[str]:
        """Add the option."""
        return [*super().transport_options(run), "--progress"]


def _take(bed: Bed, orders: RelayOrders, step: BottleneckStep) -> Shape:
    """Change the bottleneck; return its shape."""
    shape = _shape(step.share)
    if step.burst:
        orders.give(f"burst {step.burst}")
    else:
        bed.shape_uplink(_SENDERS_RACK, shape)
    return shape


def _stored(run: Run) -> int:
    """Return the bytes that every receiver has stored: its file has holes where segments are missing."""
    files = [list(os.scandir(run.directory(receiver))) for receiver in run.receivers]
    return min(sum(path.stat().st_blocks * 512 for path in some) for some in files)


def goodput(samples: Sequence[GoodputSample], begin: float, seconds: float, lost: int, transport: str) -> Goodput:
    """Return the goodput from `begin` on, in two parts of `seconds`."""
    parts = [[one for one in samples if start <= one.moment <= start + seconds] for start in (begin, begin + seconds)]
    second, third = parts
    changed = [one for one in samples if one.moment >= begin]
    return Goodput(
        (_share(second[0], second[-1]), _share(third[0], third[-1])),
        (settled(second), settled(third)),
        longest_below(changed),
        lost,
        transport,
    )


def settled(samples: Sequence[GoodputSample]) -> float | None:
    """Return the seconds until goodput over a window fits the limit, None if it never does."""
    for number, first in enumerate(samples):
        end = first.moment + _WINDOW_SECONDS
        last = next((one for one in samples[number:] if one.moment >= end), None)
        if last is not None and MIN_SHARE <= _share(first, last) <= MAX_SHARE:
            return last.moment - samples[0].moment
    return None


def longest_below(samples: Sequence[GoodputSample]) -> float:
    """Return the longest time in which goodput is below MIN_GOODPUT on average."""
    return max(
        (last.moment - first.moment for first, last in combinations(samples, 2) if _share(first, last) < MIN_GOODPUT),
        default=0.0,
    )


def _share(first: GoodputSample, last: GoodputSample) -> float:
    return (last.stored - first.stored) / (last.possible - first.possible)


def _row(cell: str, runs: Sequence[Goodput], *, settles: bool) -> dict[str, Any]:
    row: dict[str, Any] = {
        "cell": cell,
        "shares": [statistics.median(run.shares[part] for run in runs) for part in (0, 1)],
        "settled": [run.settled for run in runs],
        "below": [run.below for run in runs],
        "lost": [run.lost for run in runs],
        "transports": [run.transport for run in runs],
    }
    waits = [MAX_SECONDS + 1 if one is None else one for run in runs for one in run.settled] if settles else []
    stays = set(row["transports"]) == {BlastMulticast.transport}
    return {**row, "kept": stays and max([*waits, *row["below"]]) <= MAX_SECONDS}


def _line(row: dict[str, Any]) -> str:
    during, after = (_latest([run[part] for run in row["settled"]]) for part in (0, 1))
    return (
        f"{row['cell']:<14} x {row['shares'][0]:.2f} of the limit, then x {row['shares'][1]:.2f}; fits {during}, then "
        f"{after}; below {MIN_GOODPUT} for {max(row['below']):.1f} s; {', '.join(sorted(set(row['transports'])))}"
        f"{'' if row['kept'] else '  MISSED'}"
    )


def _latest(seconds: Sequence[float | None]) -> str:
    return "never" if None in seconds else f"after {max(filter(None, seconds)):.1f} s"


if __name__ == "__main__":
    script.run(main)
