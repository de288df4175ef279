"""The output of a job, and its distance from the output of another run.

If tasks' results are summed in order of arrival, the last digits differ between runs.
"""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_NUMBER = re.compile(rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


@dataclass(frozen=True, eq=False)
class Printed:
    """SHA-256 of everything, and every number in it."""

    digest: str
    numbers: NDArray[np.float64]


def read_printed(file: Path) -> Printed:
    """Read all output in a file."""
    text = file.read_bytes()
    numbers = np.fromiter((float(match.group()) for match in _NUMBER.finditer(text)), np.float64)
    return Printed(hashlib.sha256(text).hexdigest(), numbers)


def distance(one: Printed, other: Printed) -> float:
    """Return the largest difference of two numbers in the same place, over the largest number.

    0 if both outputs are the same; infinite if one of them has more numbers, or the same numbers in another text.
    """
    if one.digest == other.digest:
        return 0.0
    if len(one.numbers) != len(other.numbers):
        return math.inf
    largest = max(np.abs(one.numbers).max(initial=0.0), np.abs(other.numbers).max(initial=0.0))
    apart = float(np.abs(one.numbers - other.numbers).max(initial=0.0) / largest) if largest else 0.0
    # Other words around the same numbers are another result.
    return apart or math.inf
