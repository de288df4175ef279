"""The weights, their checksum, and the output of the programs. It needs only NumPy, so that all interpreters run it."""

from __future__ import annotations

import json
import sys
import time
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

SMALL_BYTES = 1_000_000
LAYER_BYTES = 16_000_000


def size_of(source: str, model: str) -> int:
    """Return the size in bytes of `small` or `weights`."""
    return SMALL_BYTES if model == "small" else Path(source).stat().st_size


def layers(source: str, model: str) -> dict[str, np.ndarray[Any, Any]]:
    """Return the file as float32 layers by name."""
    return {
        name: np.fromfile(source, np.uint8, length, offset=begin).view("<f4")
        for name, begin, length in spans(size_of(source, model))
    }


def spans(size: int) -> list[tuple[str, int, int]]:
    """Return name, begin and length of every layer."""
    return [(f"layer-{begin:012}", begin, min(LAYER_BYTES, size - begin)) for begin in range(0, size, LAYER_BYTES)]


def digest_of_layers(arrays: Mapping[str, np.ndarray[Any, Any]]) -> int:
    """Return the CRC-32 of all layers in the order of their names."""
    return digest(arrays[name] for name in sorted(arrays))


def digest(pieces: Iterable[Any]) -> int:
    """Return the CRC-32 of these arrays."""
    found = 0
    for piece in pieces:
        found = zlib.crc32(memoryview(piece).cast("B"), found)
    return found


def held(found: int) -> None:
    """Print that all bytes have been read, with the time and the checksum."""
    print_event("held", at=time.monotonic(), digest=found)


def print_event(event: str, **more: object) -> None:
    """Print a JSON line and flush standard output."""
    sys.stdout.write(json.dumps({"event": event, **more}) + "\n")
    sys.stdout.flush()
