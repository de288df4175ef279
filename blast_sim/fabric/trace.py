"""Traces of the rack fabric: the events at every port, in the order of time.

The file, little-endian throughout, is a header of 16 bytes, b"BLASTRF1", version (u32, 1) and size of a record
(u32, 32), and then records:

| bytes | field | is |
|---|---|---|
| 0–7 | time_ps | simulated picoseconds since the start |
| 8 | kind | one of `TraceEventKind` |
| 9 | flags | by kind |
| 10–11 | port | leaf × ports of a leaf + number of the port |
| 12–15 | frame | number of the frame, or `NONE` |
| 16–19 | voq | number of the virtual output queue, or `NONE` |
| 20–23 | value | by kind |
| 24–31 | extra | by kind |
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from blast_sim.base.wrong_input import InputError

MAGIC = b"BLASTRF1"
VERSION = 1
HEADER = struct.Struct("<8sII")
RECORD = np.dtype(
    [
        ("time_ps", "<u8"),
        ("kind", "u1"),
        ("flags", "u1"),
        ("port", "<u2"),
        ("frame", "<u4"),
        ("voq", "<u4"),
        ("value", "<u4"),
        ("extra", "<u8"),
    ]
)
NONE = 2**32 - 1
"""No frame, or no virtual output queue."""

OVER_PAYLOAD_LINE = 1
"""Flag of PACKET_SENT: the packet has taken the port's payload line, not the cache."""

AT_ONCE = 65_536
"""Records that are read at a time: 2 MB."""

Events = NDArray[np.void]
"""Records, an array with the fields of RECORD."""


class TraceEventKind(IntEnum):
    """The kind of an event."""

    FRAME_IN = 1
    FRAME_DROPPED = 2
    HEADER_ACCEPTED = 3
    HEADER_DROPPED = 4
    REQUEST = 5
    GRANT = 6
    BEGIN_FRAME = 7
    PACKET_SENT = 8
    """value: number of the packet; flags: OVER_PAYLOAD_LINE."""
    CACHE_WRITTEN = 9
    CACHE_EVICTED = 10
    """value: number of the packet."""
    SUSPENDED = 11
    RESUMED = 12
    """value: a Reason."""
    HEAD_DROPPED = 13
    ACKED = 14
    PAYLOAD_FREED = 15
    FRAME_OUT = 16
    """Delivered to its host."""
    CNM = 17
    """A congestion notification; value: its feedback."""
    PAUSE = 18
    GO = 19
    CAM_ALLOCATED = 20
    CAM_RELEASED = 21
    RETRANSMITTED = 22
    CORRUPTED = 23


class DropReason(IntEnum):
    """Why a virtual output queue was resumed."""

    COUNT = 0
    TIMEOUT = 1
    RELEASED = 2


def read_trace(path: Path, at_once: int = AT_ONCE) -> Iterator[Events]:
    """Yield the records of a trace, up to `at_once` at a time.

    Raises OSError, and InputError if the file is not a complete trace of a known kind.
    """
    with path.open("rb") as file:
        _check_header(path, file.read(HEADER.size))
        while data := file.read(at_once * RECORD.itemsize):
            if len(data) % RECORD.itemsize:
                raise InputError(f"{path} is cut off in the middle of an event: write the trace again")
            events: Events = np.frombuffer(data, RECORD)
            _check_kinds(path, events["kind"])
            yield events


def _check_header(path: Path, header: bytes) -> None:
    if not header.startswith(MAGIC):
        raise InputError(
            f"{path} is no trace of the rack fabric: name a file that blast sim fabric --trace has written"
        )
    if len(header) < HEADER.size:
        raise InputError(f"{path} is cut off in its header: write the trace again")
    _, version, size = HEADER.unpack(header)
    if (version, size) != (VERSION, RECORD.itemsize):
        raise InputError(
            f"{path} is a trace of version {version} with records of {size} bytes, and only version {VERSION} with "
            f"{RECORD.itemsize} is known: write it again with the simulator of this version"
        )


def _check_kinds(path: Path, kinds: NDArray[np.generic]) -> None:
    if not min(TraceEventKind) <= kinds.min() <= kinds.max() <= max(TraceEventKind):
        unknown = next(int(kind) for kind in kinds if kind not in TraceEventKind.__members__.values())
        raise InputError(f"{path} has an event of the unknown kind {unknown}: write the trace again")
