"""Claim: what a receiver does with light (receive, check, assemble, digest, write) costs less processor time by the
compiled engine than by Python, and its user time beside digest and write is at most a third of what Python's takes.

A process beside ours sends blocks by light on the loopback interface, as many as we say; we read, by each engine first
in every second pair, into a file in memory. Processor seconds are those of the reading thread, per GB (10^9 bytes).
Beside them, in the same pair: the digest of blocks that are hot, writes of rows of 8 blocks, and reading by Python
without doing anything with it. One row with the kernel's offload (super-packets), one without it at either end.
What counts is the median of the ratios of the pairs, with an interval of 90 % that assumes nothing of how they spread.

    .venv/bin/python benchmarks/light_intake_cost.py                  # 15 pairs of 1 GB each, a few minutes
    .venv/bin/python benchmarks/light_intake_cost.py --ways super-packets --megabytes 300 --repeats 5 --json

A bar that is missed is told; no time decides the exit status.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import select
import signal
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import machine
from engine_cost import BAR, MEGABYTES, REPEATS
from processor_cost import Cost, compared_line, engines_compared, is_kept, used_by
from transport_bed import script
from transport_bed.failures import CannotRun

from blast_transport.base.engines import COMPILED, PYTHON, check_engine, engines_here
from blast_transport.blocks.digests import suite_named
from blast_transport.blocks.layout import Layout
from blast_transport.carriers.optical import light_socket
from blast_transport.carriers.optical.burst import Burst
from blast_transport.carriers.optical.compiled_light import open_light
from blast_transport.carriers.optical.interface import open_group_socket, open_sender_socket
from blast_transport.carriers.optical.light_socket import LightSocket
from blast_transport.carriers.optical.offload import UDP_SEGMENT, DatagramSender, take_super_packets
from blast_transport.store.file_target import FileTarget, open_directory
from blast_transport.store.opening import open_assembly, open_store
from blast_transport.wire.datagram import HEADER, segment_size_for

WAYS = {"super-packets": True, "datagrams": False}
"""Whether the kernel joins and cuts datagrams."""
_MTU = 1500
_ADDRESS, _GROUP, _PORT = "127.0.0.1", "239.77.77.77", 27077
_SESSION = 77
_SUITE = suite_named("blake3")
_ROW = 8
_AT_ONCE = 16
"""Blocks that we let the sender send at a time; twice as many may be under way."""
_LATE_SECONDS = 10.0


def main() -> bool:
    """Measure and print."""
    args = _arguments()
    rows = [_row(way, args) for way in args.ways]
    if args.json:
        told = {"machine": machine.describe(), "engines": engines_here(), "megabytes": args.megabytes, "rows": rows}
        print(json.dumps(told, indent=2))
    else:
        size = _layout(1).block_size
        print(f"{machine.describe()}\nengines: {engines_here()}; loopback, tmpfs, blocks of {size} bytes")
        print(f"{args.repeats} pairs of {args.megabytes} MB; processor seconds per GB: user + system, medians")
        print("\n".join(map(_line, rows)))
    return True


def _layout(size: int) -> Layout:
    return Layout(size, segment_size_for(_MTU))


def _row(way: str, args: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        bench = _Bench(Path(folder), args.megabytes * 1_000_000, offload=WAYS[way])
        measures: dict[str, Callable[[], Cost]] = {
            "digest": bench.digest,
            "write": bench.write,
            "read alone": bench.read_alone,
            PYTHON: lambda: bench.read(PYTHON),
            COMPILED: lambda: bench.read(COMPILED),
        }
        taken = script.in_turn(measures, args.repeats)
    row = engines_compared(taken, ("digest", "write"))
    return {"way": way, **row, "kept": is_kept(row, BAR)}


class _Bench:
    """A file of about `size` bytes, all of whose blocks are the same, by light into a file below `folder`."""

    def __init__(self, folder: Path, size: int, *, offload: bool) -> None:
        block = _layout(1).block_size
        self._blocks = max(_ROW, size // block // _ROW * _ROW)
        self._layout = _layout(self._blocks * block)
        self._folder, self._offload = folder, offload
        self._block = os.urandom(block)
        self._digests = _SUITE.block(self._block) * self._blocks
        # Where the kernel does not join datagrams, `listen_to` finds that out by this.
        light_socket.take_super_packets = take_super_packets if offload else lambda _: False

    def digest(self) -> Cost:
        """Of every block."""
        return self._cost(lambda: [_SUITE.block(self._block) for _ in range(self._blocks)])

    def write(self) -> Cost:
        """Every row, into a new file."""
        path, row = self._folder / "written", [self._block] * _ROW
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try:
            return self._cost(
                lambda: [
                    os.pwritev(descriptor, row, first * self._layout.block_size)
                    for first in range(0, self._blocks, _ROW)
                ]
            )
        finally:
            os.close(descriptor)
            path.unlink()

    def read_alone(self) -> Cost:
        """What is received is checked by Python, and dropped."""
        with self._sender() as (sock, source, more):
            light = LightSocket(sock, source, _SESSION, self._layout)
            return self._cost(lambda: self._follow(sock, more, lambda: light.read(lambda _: None)[0]))

    def read(self, engine: str) -> Cost:
        """All that a receiver does."""
        target = FileTarget(open_directory(self._folder), self._folder, "stored", self._layout.size, "id")
        store = open_store(engine, self._layout, _SUITE, target)
        try:
            store.expect(0, self._digests)
            with self._sender() as (sock, source, more):
                light = open_light(sock, source, _SESSION, open_assembly(store, None))
                light.stop = self._blocks * self._layout.block_segments
                cost = self._cost(lambda: self._follow(sock, more, light.read))
            if store.engine != engine or not store.complete:
                raise CannotRun(f"not all was stored by {engine}: {store.held.held} of {self._blocks} blocks")
            return cost
        finally:
            store.discard()

    def _follow(self, sock: socket.socket, more: Callable[[], None], read: Callable[[], int]) -> None:
        """Read to the end, and let the sender go on in time."""
        came, allowed, whole = 0, 0, self._blocks * self._layout.block_size
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        while came < whole:
            while allowed < min(whole, came + 2 * _AT_ONCE * self._layout.block_size):
                more()
                allowed += _AT_ONCE * self._layout.block_size
            if not poll.poll(_LATE_SECONDS * 1000):
                raise CannotRun("datagrams were lost: let the kernel buffer more, net.core.rmem_max, or run as root")
            came += read()

    @contextmanager
    def _sender(self) -> Iterator[tuple[socket.socket, tuple[str, int], Callable[[], None]]]:
        """Our socket, the address of a process that sends the whole, and what lets it go on."""
        reader, writer = os.pipe()
        with (
            open_group_socket(_ADDRESS, _GROUP, _PORT) as ear,
            open_sender_socket(_ADDRESS, _GROUP, _PORT) as mouth,
        ):
            child = os.fork()
            if not child:
                try:
                    os.close(writer)
                    self._send(mouth, reader)
                finally:
                    os._exit(0)
            try:
                os.close(reader)
                yield ear, mouth.getsockname(), lambda: _let_go_on(writer)
            finally:
                os.close(writer)
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)

    def _send(self, mouth: socket.socket, words: int) -> None:
        """So many blocks for each byte that is said."""
        burst = Burst(_SESSION, self._layout)
        burst.payload[:] = self._block
        sender = DatagramSender(mouth, HEADER.size + self._layout.segment_size)
        if not self._offload:
            mouth.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 0)
            sender.offload = False
        block = 0
        while said := os.read(words, 1):
            for _ in said:
                for _ in range(min(_AT_ONCE, self._blocks - block)):
                    burst.load(block, self._layout.block_size)
                    sender.send(burst.parts(0, burst.segments))
                    block += 1

    def _cost(self, do: Callable[[], object]) -> Cost:
        before = used_by(resource.RUSAGE_THREAD)
        do()
        return (used_by(resource.RUSAGE_THREAD) - before) / (self._blocks * self._layout.block_size / 1e9)


def _let_go_on(words: int) -> None:
    os.write(words, b"x")


def _line(row: dict[str, Any]) -> str:
    return f"{row['way']:>13}: {compared_line(row)}{'' if row['kept'] else '  MISSED'}"


def _arguments() -> argparse.Namespace:
    parser = script.parser(__doc__, MEGABYTES, REPEATS)
    parser.add_argument("--ways", type=script.some_of(WAYS), default=list(WAYS), help=f"of {','.join(WAYS)}")
    parser.add_argument(
        "--folder", type=Path, default=Path("/dev/shm"), help="where files are written (default: memory)"
    )
    args = parser.parse_args()
    check_engine(COMPILED)
    return args


if __name__ == "__main__":
    script.run(main)
