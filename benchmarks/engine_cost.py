"""Claim: what a receiver does with blocks (digest, look at the books, write) costs less processor time by the compiled
engine than by Python, and what is left beside digest and write is at most a third of what Python's takes.

Both engines take the same blocks into a file in memory, each first in every second pair: in rows of 16, as a chain
brings them, of 8, as light does, and one by one, as repairs come. Processor seconds are those of the calling thread, in
which all of it happens, per GB (10^9 bytes). Digest and write alone are measured in the same pair: BLAKE3 of blocks
that are hot, and writes of the same rows. What counts is the median of the ratios of the pairs, with an interval of
90 % that assumes nothing of how they spread (by ranks).

    .venv/bin/python benchmarks/engine_cost.py                     # 15 pairs of 1 GB each, a minute or two
    .venv/bin/python benchmarks/engine_cost.py --rows 16 --repeats 5 --json

A bar that is missed is told; no time decides the exit status.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import machine
from processor_cost import Cost, compared_line, engines_compared, is_kept, used_by
from transport_bed import script

from blast_transport.base.engines import COMPILED, PYTHON, check_engine, engines_here
from blast_transport.blocks.digests import suite_named
from blast_transport.blocks.layout import Layout
from blast_transport.store.file_target import FileTarget, open_directory
from blast_transport.store.opening import open_store
from blast_transport.wire.datagram import segment_size_for

ROWS = (16, 8, 1)
"""Blocks that come together."""
CHAINS = 16
BAR = 1 / 3
"""Of Python's, beside digest and write, at most."""
MEGABYTES, REPEATS = 1000, 15
_MTU = 1500
_SUITE = suite_named("blake3")


def main() -> bool:
    """Measure and print."""
    args = _arguments()
    rows = [_row(number, args) for number in args.rows]
    if args.json:
        told = {"machine": machine.describe(), "engines": engines_here(), "megabytes": args.megabytes, "rows": rows}
        print(json.dumps(told, indent=2))
    else:
        print(f"{machine.describe()}\nengines: {engines_here()}; tmpfs, blocks of {_layout(1).block_size} bytes")
        print(f"{args.repeats} pairs of {args.megabytes} MB; processor seconds per GB: user + system, medians")
        print("\n".join(map(_line, rows)))
    return True


def _layout(size: int) -> Layout:
    return Layout(size, segment_size_for(_MTU))


def _row(number: int, args: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        bench = _Bench(Path(folder), number, args.megabytes * 1_000_000)
        measures: dict[str, Callable[[], Cost]] = {
            "digest": bench.digest,
            "write": bench.write,
            PYTHON: lambda: bench.store(PYTHON),
            COMPILED: lambda: bench.store(COMPILED),
        }
        taken = script.in_turn(measures, args.repeats)
    row = engines_compared(taken, ("digest", "write"))
    return {"rows_of": number, **row, "kept": is_kept(row, BAR)}


class _Bench:
    """Rows of so many blocks, `size` bytes in all, out of memory that is warm, into a file below `folder`."""

    def __init__(self, folder: Path, number: int, size: int) -> None:
        block = _layout(1).block_size
        self._number, self._folder = number, folder
        self._rows = max(1, size // (block * number))
        self._layout = _layout(self._rows * number * block)
        self._data = memoryview(bytearray(os.urandom(number * block)))
        self._blocks = [self._data[begin : begin + block] for begin in range(0, len(self._data), block)]
        self._digests = b"".join(map(_SUITE.block, self._blocks))

    def digest(self) -> Cost:
        """Of every block."""
        return self._cost(lambda row: [_SUITE.block(block) for block in self._blocks])

    def write(self) -> Cost:
        """Every row, into a new file."""
        path = self._folder / "written"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try:
            return self._cost(lambda row: os.pwritev(descriptor, [self._data], row * len(self._data)))
        finally:
            os.close(descriptor)
            path.unlink()

    def store(self, engine: str) -> Cost:
        """All that a store does with every row, which is right."""
        target = FileTarget(open_directory(self._folder), self._folder, "stored", self._layout.size, "id")
        store = open_store(engine, self._layout, _SUITE, target)
        try:
            for row in range(self._rows):
                store.expect(row * self._number, self._digests)
            if self._number >= CHAINS:
                cost = self._cost(lambda row: store.put_row(row * self._number, self._data))
            else:
                cost = self._cost(lambda row: store.put_all(row * self._number, self._blocks))
            if store.engine != engine or not store.complete:
                raise RuntimeError(f"not all was stored by {engine}")
            return cost
        finally:
            store.discard()

    def _cost(self, do: Callable[[int], object]) -> Cost:
        before = used_by(resource.RUSAGE_THREAD)
        for row in range(self._rows):
            do(row)
        return (used_by(resource.RUSAGE_THREAD) - before) / (self._rows * len(self._data) / 1e9)


def _line(row: dict[str, Any]) -> str:
    return f"rows of {row['rows_of']:>2}: {compared_line(row)}{'' if row['kept'] else '  MISSED'}"


def _arguments() -> argparse.Namespace:
    parser = script.parser(__doc__, MEGABYTES, REPEATS)
    parser.add_argument("--rows", type=_numbers, default=list(ROWS), help="N,N… (default: 16,8,1)")
    parser.add_argument(
        "--folder", type=Path, default=Path("/dev/shm"), help="where files are written (default: memory)"
    )
    args = parser.parse_args()
    check_engine(COMPILED)
    return args


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


if __name__ == "__main__":
    script.run(main)
