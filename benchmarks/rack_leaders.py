"""Claim: with rack leaders the sender hears at most 0.2 times as many control messages as without, a transfer by light
takes at most 1.1 times as long, and the end of a leader in its middle adds at most half a second for all others.

Both ways alternate in one run, over loopback: the same file by light to the same receivers, of which each leader has a
process of its own and the others of a rack share one. Messages and CPU are those of the sending process. Transfers in
which a leader is killed come last. No root needed.

    .venv/bin/python benchmarks/rack_leaders.py                     # a minute

Exit status 1 if the bar of messages is missed; the two of time are told, and decide nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import secrets
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import machine
from child import Child, tell

from blast_transport.carriers.choices import Light
from blast_transport.links.control_connection import FramedConnection
from blast_transport.session.route import Route
from blast_transport.session.sender import Sender
from blast_transport.session.settings import SenderSettings
from blast_transport.standalone.receiver import Receiver, ReceiverSettings

LOOPBACK = "127.0.0.1"
MTU = 9000
MESSAGES_BAR, SECONDS_BAR, ADDED_BAR = 0.2, 1.1, 0.5
READY_SECONDS = 30.0
WAYS = {"direct": sys.maxsize, "leaders": 1}


def main() -> bool:
    """Measure and print; whether the bar of messages was kept."""
    args = _arguments()
    if args.serve:
        _serve(Path(args.serve), args.per_rack)
        return True
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        source = folder / "data"
        source.write_bytes(random.Random(1).randbytes(args.megabytes * 1_000_000))
        with _receivers(folder / "whole", args.racks, args.per_rack) as (receivers, _):
            rounds = [
                {way: _measure(source, receivers, most_direct, args) for way, most_direct in WAYS.items()}
                for _ in range(1 + args.repeats)
            ]
        killed = [_measure_killed(source, folder / str(number), args) for number in range(args.repeats)]
    # The first round warms up.
    found = {way: _median([round_[way] for round_ in rounds[1:]]) for way in WAYS}
    ratio = {key: found["leaders"][key] / found["direct"][key] for key in found["direct"] if found["direct"][key]}
    found["leader killed"] = _median(killed)
    if args.json:
        print(json.dumps({"machine": machine.describe(), "settings": vars(args), **found, "ratio": ratio}, indent=2))
    else:
        _print(args, found, ratio)
    return ratio["messages heard"] <= MESSAGES_BAR


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--racks", type=int, default=3)
    parser.add_argument("--per-rack", type=int, default=16, help="receivers in each")
    parser.add_argument("--megabytes", type=int, default=24)
    parser.add_argument("--rate-mbps", type=float, default=30.0, help="on the wire")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    return parser.parse_args()


def _measure(
    source: Path, receivers: list[tuple[str, str, int]], most_direct: int, args: Any, lost: int = 0
) -> dict[str, float]:
    racks = {name: name.partition("-")[0] for name, _, _ in receivers}
    settings = SenderSettings(LOOPBACK, MTU, racks=racks, most_direct=most_direct)
    group = f"239.80.{secrets.randbelow(256)}.{secrets.randbelow(254) + 1}"
    light = Light(group, 20000 + secrets.randbelow(10000), args.rate_mbps * 1e6)
    with Sender(receivers, settings) as sender, _counted() as counts:
        absent = sender.connect()
        connections, cpu, began = sender.connections, time.process_time(), time.monotonic()
        result = sender.send_file(source, Route(light))
        seconds, cpu = time.monotonic() - began, time.process_time() - cpu
    if absent or result.complete < len(receivers) - lost:
        reasons = [outcome.reason for outcome in result.receivers if outcome.reason]
        raise SystemExit(f"{result.complete} of {len(receivers)} receivers complete: {absent or reasons}")
    return {"connections": connections, "seconds": seconds, "CPU seconds": cpu, **counts}


def _measure_killed(source: Path, folder: Path, args: argparse.Namespace) -> dict[str, float]:
    """As `_measure`; half-way the first leader is killed."""
    with _receivers(folder, args.racks, args.per_rack) as (receivers, leader):
        killing = threading.Timer(args.megabytes * 8 / args.rate_mbps / 2, leader.kill)
        killing.start()
        found = _measure(source, receivers, WAYS["leaders"], args, lost=1)
        killing.join()
        return found


@contextmanager
def _counted() -> Iterator[Counter[str]]:
    """What the connections of this process carry, as long as the block lasts."""
    counts: Counter[str] = Counter({"messages heard": 0, "messages said": 0, "bytes said": 0})
    receive, send = FramedConnection.receive, FramedConnection.send_frame

    def counting_receive(connection: FramedConnection[Any]) -> list[Any]:
        messages = receive(connection)
        counts["messages heard"] += len(messages)
        return messages

    def counting_send(connection: FramedConnection[Any], frame: bytes) -> None:
        counts["messages said"] += 1
        counts["bytes said"] += len(frame)
        send(connection, frame)

    FramedConnection.receive, FramedConnection.send_frame = counting_receive, counting_send  # type: ignore[method-assign]
    try:
        yield counts
    finally:
        FramedConnection.receive, FramedConnection.send_frame = receive, send  # type: ignore[method-assign]


@contextmanager
def _receivers(folder: Path, racks: int, per_rack: int) -> Iterator[tuple[list[tuple[str, str, int]], Child]]:
    """Their addresses, and the process of the first leader."""
    found: list[tuple[str, str, int]] = []
    folder.mkdir()
    with ExitStack() as stack:
        children: list[tuple[str, Child]] = []
        for rack in range(racks):
            # A leader works in a process of its own, as an agent does.
            for part, count in (("a", 1), ("b", per_rack - 1)):
                place = folder / f"rack{rack}{part}"
                place.mkdir()
                command = [sys.executable, __file__, "--serve", str(place), "--per-rack", str(count)]
                children.append((f"rack{rack}-{part}", Child(place.name, command, folder / "log")))
                stack.callback(children[-1][1].stop)
        for name, child in children:
            ports = child.next(READY_SECONDS)["ports"]
            found += [(f"{name}{number}", LOOPBACK, port) for number, port in enumerate(ports)]
        yield found, children[0][1]


def _serve(folder: Path, count: int) -> None:
    ports = []
    for number in range(count):
        place = folder / str(number)
        place.mkdir()
        receiver = Receiver(ReceiverSettings((LOOPBACK, 0), place, LOOPBACK), lambda event: None)
        threading.Thread(target=receiver.run, daemon=True).start()
        ports.append(receiver.address[1])
    tell({"ports": ports})
    sys.stdin.read()
    os._exit(0)


def _median(rows: list[dict[str, float]]) -> dict[str, float]:
    return {key: statistics.median(row[key] for row in rows) for key in rows[0]}


def _print(args: argparse.Namespace, found: dict[str, dict[str, float]], ratio: dict[str, float]) -> None:
    print(machine.describe())
    print(
        f"{args.racks} racks of {args.per_rack} receivers, {args.megabytes} MB by light at {args.rate_mbps:g} Mbit/s "
        f"over loopback; the sending process, median of {args.repeats}"
    )
    print(f"{'':<14}" + "".join(f"{key:>16}" for key in found["direct"]))
    for way, row in found.items():
        print(f"{way:<14}" + "".join(f"{value:>16.4g}" for value in row.values()))
    seconds, added = ratio["seconds"], found["leader killed"]["seconds"] - found["leaders"]["seconds"]
    for words, value, bar in (("ratio of seconds", seconds, SECONDS_BAR), ("seconds added", added, ADDED_BAR)):
        print(f"{words}: {value:.3f}, bar {bar:g}{'' if value <= bar else '  MISSED'}; told only")
    print(f"{'ratio':<14}" + "".join(f"{ratio.get(key, 0.0):>16.3f}" for key in found["direct"]))


if __name__ == "__main__":
    sys.exit(not main())
