"""The coflow-benchmark format: shuffles between racks.

    150 526                                   racks, coflows
    1 0 1 22 1 65:1.0                         id, arrival in ms, 1 mapper, its rack, 1 reducer, its rack:megabytes
    2 10833 2 104 132 1 140:48.0

Racks count from 0, megabytes are decimal, arrivals are not decreasing. The authors of the published trace
(FB2010-1Hr-150-0) request citations of Varys (SIGCOMM 2014) and Aalo (SIGCOMM 2015).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from blast_sim.base.wrong_input import InputError, shown

MAX_RACKS = 100_000
"""Bounds of memory and of the clock for files from elsewhere, as the three below."""
MAX_COFLOWS = 10_000_000
MAX_MILLISECONDS = 10**12
MAX_MEGABYTES = 1e12


@dataclass(frozen=True, slots=True)
class Coflow:
    """One shuffle: the data that each reducer rack fetches from all mapper racks together."""

    name: str
    arrival_ms: int
    mappers: tuple[int, ...]
    reducers: tuple[int, ...]
    megabytes: tuple[float, ...]

    @property
    def racks(self) -> set[int]:
        """All racks that take part."""
        return {*self.mappers, *self.reducers}


@dataclass(frozen=True, slots=True)
class CoflowTrace:
    """Coflows in order of arrival."""

    racks: int
    coflows: tuple[Coflow, ...]


def read_coflows(path: Path) -> CoflowTrace:
    """Read the trace in a file. Raises InputError, OSError."""
    return parse_coflows(path.read_bytes(), str(path))


def parse_coflows(data: bytes, name: str) -> CoflowTrace:
    """Parse the trace in these bytes; errors call them `name`. Raises InputError with name and line."""
    try:
        lines = data.decode("ascii").split("\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{name}:{line}: this is no coflow trace: it has characters other than ASCII") from None
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise InputError(f"{name}:1: the file is empty: the first line must have the numbers of racks and coflows")
    head = _Line(name, 1, lines[0])
    racks, count = head.whole("number of racks", 1, MAX_RACKS), head.whole("number of coflows", 0, MAX_COFLOWS)
    head.end()
    if len(lines) - 1 != count:
        raise InputError(f"{name}:1: the first line announces {count} coflows, but {len(lines) - 1} lines follow")
    coflows = tuple(_coflow(_Line(name, number, text), racks) for number, text in enumerate(lines[1:], start=2))
    _check_order(name, coflows)
    return CoflowTrace(racks, coflows)


def written(trace: CoflowTrace) -> str:
    """Return the trace as the text of a file."""
    lines = [f"{trace.racks} {len(trace.coflows)}"]
    for coflow in trace.coflows:
        sizes = [f"{rack}:{size}" for rack, size in zip(coflow.reducers, coflow.megabytes, strict=True)]
        mappers = [str(rack) for rack in coflow.mappers]
        fields = [coflow.name, str(coflow.arrival_ms), str(len(mappers)), *mappers, str(len(sizes)), *sizes]
        lines.append(" ".join(fields))
    return "\n".join(lines) + "\n"


def _check_order(name: str, coflows: tuple[Coflow, ...]) -> None:
    seen: set[str] = set()
    latest = 0
    for number, coflow in enumerate(coflows, start=2):
        if coflow.name in seen:
            raise InputError(f"{name}:{number}: the coflow {shown(coflow.name)} is there twice: ids must differ")
        if coflow.arrival_ms < latest:
            raise InputError(
                f"{name}:{number}: this arrival, {coflow.arrival_ms} ms, is before that of the line above: "
                f"sort the lines by arrival"
            )
        seen.add(coflow.name)
        latest = coflow.arrival_ms


def _coflow(line: _Line, racks: int) -> Coflow:
    name = line.next("id")
    arrival = line.whole("arrival in ms", 0, MAX_MILLISECONDS)
    mappers = [line.rack(line.next("mapper"), "mapper", racks) for _ in line.several("mappers", racks)]
    line.differ(mappers, "mappers")
    reducers, megabytes = [], []
    for _ in line.several("reducers", racks):
        text = line.next("reducer")
        rack, colon, size = text.partition(":")
        if not colon:
            raise line.wrong(f"a reducer must be RACK:MEGABYTES, not {shown(text)}")
        reducers.append(line.rack(rack, "reducer", racks))
        megabytes.append(line.size(size))
    line.differ(reducers, "reducers")
    line.end()
    return Coflow(name, arrival, tuple(mappers), tuple(reducers), tuple(megabytes))


class _Line:
    """The fields of a line, taken one by one. The methods raise InputError for an invalid field."""

    def __init__(self, name: str, number: int, text: str) -> None:
        self._place = f"{name}:{number}"
        self._fields = text.split()
        self._taken = 0

    def wrong(self, sentence: str) -> InputError:
        """Return an error at this line."""
        return InputError(f"{self._place}: {sentence}")

    def next(self, field: str) -> str:
        """Return the next field."""
        if self._taken == len(self._fields):
            raise self.wrong(f"the line ends where its {field} should be")
        self._taken += 1
        return self._fields[self._taken - 1]

    def whole(self, field: str, minimum: int, maximum: int) -> int:
        """Return the next field as a whole number."""
        return self._whole(self.next(field), field, minimum, maximum)

    def several(self, field: str, maximum: int) -> Iterator[int]:
        """Iterate as many times as the next field specifies."""
        return iter(range(self.whole(f"number of {field}", 1, maximum)))

    def rack(self, text: str, field: str, racks: int) -> int:
        """Return a rack's number."""
        return self._whole(text, f"{field}'s rack (racks count from 0)", 0, racks - 1)

    def size(self, text: str) -> float:
        """Parse a size in megabytes."""
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        # Underscores and words like "inf" are numbers to Python only.
        if "_" in text or not 0 < value <= MAX_MEGABYTES:
            limits = f"a number above 0, at most {MAX_MEGABYTES:g}"
            raise self.wrong(f"a reducer's megabytes must be {limits}, not {shown(text)}")
        return value

    def differ(self, racks: list[int], field: str) -> None:
        """Raise InputError if a rack occurs twice."""
        if len(set(racks)) < len(racks):
            twice = next(rack for place, rack in enumerate(racks) if rack in racks[:place])
            raise self.wrong(f"rack {twice} is there twice among the {field}")

    def end(self) -> None:
        """Raise InputError if fields are left."""
        if self._taken < len(self._fields):
            raise self.wrong(f"the line should end before {shown(self._fields[self._taken])}")

    def _whole(self, text: str, field: str, minimum: int, maximum: int) -> int:
        if not (text.isdecimal() and len(text) <= 15 and minimum <= int(text) <= maximum):
            raise self.wrong(f"the {field} must be a whole number from {minimum} to {maximum}, not {shown(text)}")
        return int(text)
