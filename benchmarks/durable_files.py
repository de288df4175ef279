"""What it costs that a file is on disk (fsync of it and of its folder) before its sender hears that it is complete.

The same file goes over loopback to receivers that sync and to receivers that do not, in turn and in one run; each pair
gives a ratio of times. All receivers share this machine's disk, so more than one of them is worse here than on hosts of
their own. The floor is the disk's: as many bytes written by nothing but write and fsync.

    python benchmarks/durable_files.py [--megabytes M] [--receivers N] [--pairs P] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import machine

from blast_transport.carriers.choices import CarrierChoice, Chain, Unicast
from blast_transport.session.route import Route
from blast_transport.session.sender import Sender

LOOPBACK = "127.0.0.1"
_WRITE_BYTES = 1 << 20
WAYS: dict[str, CarrierChoice] = {"pipeline": Chain(), "unicast": Unicast()}

Address = tuple[str, str, int]


@contextmanager
def receiver(folder: Path, name: str, option: str) -> Iterator[Address]:
    """One in a process of its own."""
    (folder / name).mkdir()
    command = [sys.executable, "-m", "blast_transport", "receive", "--listen", f"{LOOPBACK}:0", option]
    process = subprocess.Popen([*command, "--directory", str(folder / name)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        port = json.loads(process.stdout.readline())["port"]
        yield name, LOOPBACK, port
    finally:
        process.terminate()
        process.communicate()


def seconds_of(sender: Sender, source: Path, way: CarrierChoice) -> float:
    """From the first byte to the last receiver's word."""
    began = time.monotonic()
    result = sender.send_file(source, Route(way))
    if result.complete != len(result.receivers):
        raise SystemExit(f"not all have it: {result.receivers}")
    return time.monotonic() - began


def disk_seconds(folder: Path, size: int) -> float:
    """To write so many bytes and sync them."""
    data, path = os.urandom(_WRITE_BYTES), folder / "floor"
    began = time.monotonic()
    with path.open("wb", buffering=0) as file:
        for _ in range(size // _WRITE_BYTES):
            file.write(data)
        os.fsync(file.fileno())
    taken = time.monotonic() - began
    path.unlink()
    return taken


def measure(senders: Sequence[Sender], source: Path, way: CarrierChoice, pairs: int) -> list[tuple[float, float]]:
    """(synced, not synced) seconds of each pair, in an order that changes; one round before that is not counted."""
    found = []
    for pair in range(pairs + 1):
        order = (0, 1) if pair % 2 else (1, 0)
        taken = [0.0, 0.0]
        for index in order:
            taken[index] = seconds_of(senders[index], source, way)
            # What one leaves to the disk is not the other's to wait for.
            os.sync()
        found.append((taken[0], taken[1]))
    return found[1:]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--receivers", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="on the disk to be measured (no tmpfs)")
    args = parser.parse_args()
    print(machine.describe())
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=args.folder)))
        source = folder / "source"
        source.write_bytes(os.urandom(args.megabytes * 1_000_000))
        os.sync()
        senders = []
        for option in ("--fsync", "--no-fsync"):
            names = [f"r{number}{option}" for number in range(args.receivers)]
            there = [stack.enter_context(receiver(folder, name, option)) for name in names]
            senders.append(stack.enter_context(Sender(there)))
        floor = disk_seconds(folder, source.stat().st_size * args.receivers)
        print(f"{args.megabytes} MB to {args.receivers} receivers on one disk, {args.pairs} pairs; medians")
        print(f"write and fsync of as many bytes, nothing else: {floor:.3f} s")
        print(f"{'way':10}{'synced s':>10}{'not s':>10}{'ratio':>8}{'least':>8}{'most':>8}")
        for name, way in WAYS.items():
            found = measure(senders, source, way, args.pairs)
            ratios = sorted(synced / unsynced for synced, unsynced in found)
            medians = [statistics.median(column) for column in zip(*found, strict=True)]
            spread = f"{statistics.median(ratios):8.2f}{ratios[0]:8.2f}{ratios[-1]:8.2f}"
            print(f"{name:10}{medians[0]:10.3f}{medians[1]:10.3f}{spread}")


if __name__ == "__main__":
    main()
