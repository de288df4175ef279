"""Claim: what a sender by light does with a file (read, digest, send) costs less processor time by the compiled engine
than by Python, and of what is user time beside the digest at most a third is left.

Both engines send the same file out of memory, as fast as they can, over the loopback interface to a group that somebody
has joined and nobody reads, each first in every second pair: whole blocks, pieces of them as at low rates, and with one
segment of a hundred once more, as what light loses. Nobody waits for a pace here: what the compiled engine saves by
waiting by itself is in `sender_cost.py` and `engine_at_rate.py`. Processor seconds are those of the calling thread, in
which all of it happens, per GB (10^9 bytes) of the file. Its stages are measured alone in the same pair: reads into
memory that is hot, BLAKE3 of what is hot, and super-packets to the same group. What counts is the median of the ratios
of the pairs, with an interval of 90 % that assumes nothing of how they spread (by ranks).

    .venv/bin/python benchmarks/light_sending_cost.py                 # 15 pairs of 500 MB each, a minute or two
    .venv/bin/python benchmarks/light_sending_cost.py --ways whole --repeats 5 --json

A bar that is missed is told; no time decides the exit status.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import machine
from processor_cost import Cost, compared_line, engines_compared, is_kept, used_by
from transport_bed import contents, script

from blast_transport.base.engines import COMPILED, PYTHON, check_engine, engines_here
from blast_transport.base.waker import Waker
from blast_transport.blocks.block_map import BlockMap
from blast_transport.blocks.digests import suite_named
from blast_transport.blocks.layout import Layout
from blast_transport.carriers.choices import Light
from blast_transport.carriers.optical.burst import Burst
from blast_transport.carriers.optical.interface import open_group_socket, open_sender_socket
from blast_transport.carriers.optical.offload import DatagramSender, take_super_packets
from blast_transport.carriers.optical.sender import OpticalSender
from blast_transport.carriers.sending import SendingContext
from blast_transport.links.dialling import dial
from blast_transport.store.opening import open_reader
from blast_transport.store.source import FileSource, opened_file
from blast_transport.wire.carriers import OPTICAL
from blast_transport.wire.datagram import HEADER, segment_size_for, wire_bytes
from blast_transport.wire.messages import Leg

BAR = 1 / 3
"""Of Python's user time beside the digest, at most."""
MEGABYTES, REPEATS = 500, 15
_MTU, _LOOPBACK = 1500, "127.0.0.1"
_SEGMENT = segment_size_for(_MTU)
_SUITE = suite_named("blake3")
_GROUP, _PORT = "239.77.77.77", 27777
_UNPACED = 1e12
"""Bits/s, more than the machine can do."""


@dataclass(frozen=True, slots=True)
class Way:
    """`piece` segments in a burst; every `again`-th segment leaves once more, where that is not 0."""

    piece: int
    again: int = 0


WAYS = {"whole": Way(44), "pieces": Way(11), "repairs": Way(44, 100)}


def main() -> bool:
    """Measure and print."""
    args = _arguments()
    size = args.megabytes * 1_000_000
    contents.require_room(size, 1)
    with tempfile.TemporaryDirectory(dir=args.folder) as folder, _listened():
        path = Path(folder) / "source"
        contents.write_random(path, size)
        rows = [_row(name, path, args.repeats) for name in args.ways]
    if args.json:
        told = {"machine": machine.describe(), "engines": engines_here(), "megabytes": args.megabytes, "rows": rows}
        print(json.dumps(told, indent=2))
    else:
        print(f"{machine.describe()}\nengines: {engines_here()}; tmpfs, loopback, MTU {_MTU}")
        print(f"{args.repeats} pairs of {args.megabytes} MB; processor seconds per GB: user + system, medians")
        print("\n".join(map(_line, rows)))
    return True


def _row(name: str, path: Path, repeats: int) -> dict[str, Any]:
    with opened_file(path) as source:
        bench = _Bench(source, WAYS[name])
        measures: dict[str, Callable[[], Cost]] = {
            "read": bench.read,
            "digest": bench.digest,
            "socket": bench.socket,
            PYTHON: lambda: bench.send(PYTHON),
            COMPILED: lambda: bench.send(COMPILED),
        }
        taken = script.in_turn(measures, repeats)
    row = engines_compared(taken, ("digest",))
    return {"way": name, **row, "kept": is_kept(row, BAR)}


@contextmanager
def _listened() -> Iterator[None]:
    """Somebody has joined the group, and takes super-packets as receivers do, until his buffer is full."""
    with open_group_socket(_LOOPBACK, _GROUP, _PORT) as ear:
        take_super_packets(ear)
        yield


class _Bench:
    """The whole file, one way."""

    def __init__(self, source: FileSource, way: Way) -> None:
        self._source, self._way = source, way
        self._layout = Layout(source.size, _SEGMENT)
        self._room = memoryview(bytearray(os.urandom(self._layout.block_size)))

    def read(self) -> Cost:
        """Every block, into the same memory."""
        return self._each(lambda block: self._source.read(self._layout.offset(block), self._room))

    def digest(self) -> Cost:
        """Of as many blocks."""
        return self._each(lambda block: _SUITE.block(self._room))

    def socket(self) -> Cost:
        """As many super-packets, of the same memory."""
        burst, count, piece = Burst(1, self._layout), self._layout.block_segments, self._way.piece
        burst.load(0, self._layout.block_size)
        parts = [burst.parts(first, min(piece, count - first)) for first in range(0, count, piece)]
        with open_sender_socket(_LOOPBACK, _GROUP, _PORT) as mouth:
            sender = DatagramSender(mouth, HEADER.size + _SEGMENT)
            return self._each(lambda block: _send_all(sender, parts))

    def send(self, engine: str) -> Cost:
        """All that the carrier does."""
        reader = open_reader(engine, self._source, self._layout, _SUITE, None)
        # The rate at which bursts are such pieces.
        rate = _UNPACED if self._way.piece == self._layout.block_segments else self._piece_rate()
        with ExitStack() as undo:
            waker = undo.enter_context(closing(Waker()))
            wake, woken = waker.wake, waker.fileno()
            around = SendingContext(reader, BlockMap(), (), _LOOPBACK, _LOOPBACK, dial, None, wake, woken)
            carrier = OpticalSender(Leg(1, 1, OPTICAL, 0), Light(_GROUP, _PORT, rate), around)
            undo.callback(carrier.close)
            carrier.pace(rate)
            carrier.permit(self._layout.blocks)
            before, now = _used(), time.monotonic()
            lost = 0
            while not carrier.over:
                # Where the pacer has to be waited for, time flies: what is left is what it costs.
                now = max(time.monotonic(), now + carrier.work(now))
                for _ in range(carrier.room(now) if self._way.again else 0):
                    # Of what has left once.
                    if lost + self._way.again > carrier.datagrams - lost // self._way.again:
                        break
                    block, index = divmod(lost, self._layout.block_segments)
                    carrier.retransmit(block, 1 << index)
                    lost += self._way.again
            cost = self._cost(before)
            if reader.engine != engine or not carrier.offload or carrier.datagrams < self._segments:
                raise RuntimeError(f"not all was sent by {engine} in super-packets")
        return cost

    @property
    def _segments(self) -> int:
        return -(-self._source.size // _SEGMENT)

    def _piece_rate(self) -> float:
        # `sender.py`: bursts of a millisecond, where a block takes longer than one and a half.
        return (self._way.piece - 0.5) * wire_bytes(_SEGMENT) * 8 / 0.001

    def _each(self, do: Callable[[int], object]) -> Cost:
        before = _used()
        for block in range(self._layout.blocks):
            do(block)
        return self._cost(before)

    def _cost(self, before: Cost) -> Cost:
        return (_used() - before) / (self._source.size / 1e9)


def _send_all(sender: DatagramSender, parts: Sequence[Sequence[memoryview]]) -> None:
    for one in parts:
        sender.send(one)


def _used() -> Cost:
    return used_by(resource.RUSAGE_THREAD)


def _line(row: dict[str, Any]) -> str:
    return f"{row['way']:>7}: {compared_line(row)}{'' if row['kept'] else '  MISSED'}"


def _arguments() -> argparse.Namespace:
    parser = script.parser(__doc__, MEGABYTES, REPEATS)
    parser.add_argument(
        "--ways", type=script.some_of(WAYS), default=list(WAYS), help=f"NAME,NAME… of {','.join(WAYS)} (default: all)"
    )
    parser.add_argument("--folder", type=Path, default=Path("/dev/shm"), help="where the file is (default: memory)")
    args = parser.parse_args()
    check_engine(COMPILED)
    return args


if __name__ == "__main__":
    script.run(main)
