"""The weights as every way has them, what they add up to, and how programs say something.

For all interpreters here: it needs NumPy and nothing of ours.
"""

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


def size_of(source: str, what: str) -> int:
    """Bytes of `small` or `weights`."""
    return SMALL_BYTES if what == "small" else Path(source).stat().st_size


def layers(source: str, what: str) -> dict[str, np.ndarray[Any, Any]]:
    """The file as float32 layers by name, in memory."""
    return {
        name: np.fromfile(source, np.uint8, length, offset=begin).view("<f4")
        for name, begin, length in spans(size_of(source, what))
    }


def spans(size: int) -> list[tuple[str, int, int]]:
    """(name, begin, length) of every layer."""
    return [(f"layer-{begin:012}", begin, min(LAYER_BYTES, size - begin)) for begin in range(0, size, LAYER_BYTES)]


def digest_of_layers(arrays: Mapping[str, np.ndarray[Any, Any]]) -> int:
    """The CRC-32 of all bytes, in the order of the names: every byte is read."""
    return digest(arrays[name] for name in sorted(arrays))


def digest(pieces: Iterable[Any]) -> int:
    """The CRC-32 of all bytes of these arrays."""
    found = 0
    for piece in pieces:
        found = zlib.crc32(memoryview(piece).cast("B"), found)
    return found


def held(found: int) -> None:
    """Say that all of it has been read by now."""
    say("held", at=time.monotonic(), digest=found)


def say(event: str, **more: object) -> None:
    """One JSON line."""
    sys.stdout.write(json.dumps({"event": event, **more}) + "\n")
    sys.stdout.flush()
