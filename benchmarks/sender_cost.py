"""Claim: to send by light to a hundred receivers behind four rack leaders takes at most 1.1 times the processor time
per GB that it takes to send to one.

Both in turn over the loopback interface: the same file, at the same rates, to one receiver and to all of them. They are
emulated by one process beside ours (`emulated_receivers.py`), which takes the light once; their leaders are real. What
is told is the processor time of the sending process, user and system, and what it hears. What counts is the median of
the ratios of rounds, with an interval of 90 % that assumes nothing of how they spread (by ranks). No root needed.

    .venv/bin/python benchmarks/sender_cost.py                                     # five minutes
    .venv/bin/python benchmarks/sender_cost.py --rates 1000 --racks 8 --per-rack 125 --repeats 3

A bar that is missed is told; no time decides the exit status.
"""

from __future__ import annotations

import argparse
import json
import resource
import secrets
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import machine
from child import Child
from median_interval import median_interval
from processor_cost import Cost, used_by
from transport_bed import contents, script
from transport_bed.failures import CannotRun

from blast_transport.carriers.choices import Light
from blast_transport.session.route import Route
from blast_transport.session.sender import Sender
from blast_transport.session.settings import SenderSettings

BAR = 1.1
RATES = (100, 400, 1000)
"""Mbit/s on the wire."""
MEGABYTES, REPEATS = 200, 5
LOOPBACK, MTU = "127.0.0.1", 1500
_READY_SECONDS = 30.0
_EMULATION = Path(__file__).with_name("emulated_receivers.py")
Receiver = tuple[str, str, int]


def main() -> bool:
    """Measure and print."""
    args = _arguments()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "data"
        contents.write_random(source, args.megabytes * 1_000_000)
        with_all = Child("receivers", _command(args.racks * args.per_rack), Path(folder) / "log")
        try:
            ports = with_all.next(_READY_SECONDS)["ports"]
            receivers = [(f"rack{n % args.racks}-{n // args.racks}", LOOPBACK, port) for n, port in enumerate(ports)]
            rows = [_row(source, receivers, rate, args) for rate in args.rates]
        finally:
            with_all.stop()
    if args.json:
        print(json.dumps({"machine": machine.describe(), "settings": vars(args), "rows": rows}, indent=2))
    else:
        print(f"{machine.describe()}\n{args.megabytes} MB, {args.repeats} rounds: medians, ratios with a 90 % interval")
        print("\n".join(_line(row) for row in rows))
    return True


def _command(count: int) -> Sequence[str]:
    return [sys.executable, str(_EMULATION), str(count)]


@dataclass(frozen=True, slots=True)
class Sent:
    """What one transfer took of the sending process."""

    cost: Cost
    seconds: float


def _row(source: Path, receivers: Sequence[Receiver], rate: int, args: argparse.Namespace) -> dict[str, Any]:
    ways = {"one": receivers[:1], "all": receivers}
    sent = script.in_turn({way: partial(_send, source, some, rate) for way, some in ways.items()}, args.repeats)
    gigabytes = args.megabytes / 1000
    ratios = [of_all.cost.both / of_one.cost.both for of_one, of_all in zip(sent["one"], sent["all"], strict=True)]
    low, ratio, high = median_interval(ratios)
    return {
        "rate_mbps": rate,
        "receivers": len(receivers),
        "leaders": args.racks,
        **{
            way: {
                "mbps": statistics.median(args.megabytes * 8 / one.seconds for one in sent[way]),
                "user": statistics.median(one.cost.user / gigabytes for one in sent[way]),
                "system": statistics.median(one.cost.system / gigabytes for one in sent[way]),
            }
            for way in ways
        },
        "ratio": ratio,
        "interval": [low, high],
        "kept": low <= BAR,
    }


def _send(source: Path, receivers: Sequence[Receiver], rate: int) -> Sent:
    """By light, with a leader for every rack of more than one."""
    racks = {name: name.partition("-")[0] for name, _, _ in receivers}
    group = f"239.81.{secrets.randbelow(256)}.{secrets.randbelow(254) + 1}"
    light = Light(group, 20000 + secrets.randbelow(10000), rate * 1e6)
    with Sender(receivers, SenderSettings(LOOPBACK, MTU, racks=racks, most_direct=1)) as sender:
        absent, before = sender.connect(), used_by(resource.RUSAGE_SELF)
        result = sender.send_file(source, Route(light))
        cost = used_by(resource.RUSAGE_SELF) - before
    reasons = [outcome.reason for outcome in result.receivers if outcome.reason]
    if absent or result.complete < len(receivers):
        raise CannotRun(f"{result.complete} of {len(receivers)} have the file: {absent or reasons}")
    if result.repaired_bytes:
        raise CannotRun(f"{result.repaired_bytes} bytes were sent again, which emulated receivers never ask for")
    return Sent(cost, result.seconds)


def _line(row: dict[str, Any]) -> str:
    def told(way: str) -> str:
        one = row[way]
        return f"{one['user']:.2f} + {one['system']:.2f} at {one['mbps']:.0f} Mbit/s"

    low, high = row["interval"]
    return (
        f"{row['rate_mbps']} Mbit/s on the wire: processor s per GB, user + system: one {told('one')}, "
        f"{row['receivers']} behind {row['leaders']} {told('all')}; x {row['ratio']:.3f} ({low:.3f}-{high:.3f}), bar "
        f"{BAR:g}{'' if row['kept'] else '  MISSED'}"
    )


def _arguments() -> argparse.Namespace:
    parser = script.parser(__doc__, MEGABYTES, REPEATS)
    rates = f"Mbit/s,… (default: {','.join(map(str, RATES))})"
    parser.add_argument("--rates", type=script.counts, default=list(RATES), help=rates)
    parser.add_argument("--racks", type=script.count, default=4, help="each with a leader (default: 4)")
    parser.add_argument("--per-rack", type=script.count, default=25, help="receivers in each (default: 25)")
    return parser.parse_args()


if __name__ == "__main__":
    script.run(main)
