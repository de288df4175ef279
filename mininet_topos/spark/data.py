"""Input for Spark's examples: text that no compression makes much smaller, the same for the same sizes.

Each file is read by one task, so that a folder of as many files as there are executors gives work to all of them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_SEED = 14
_DIGITS = 7
_ONE = 10**_DIGITS
_SPREAD = 20
"""Points lie beside a line, at most this part of its length apart from it: so the centers move more than once."""


def write_points(folder: Path, files: int, points: int, dimensions: int) -> None:
    """Write `points` lines of `dimensions` numbers from 0 to 1 to each of `files` files."""
    folder.mkdir()
    chance = np.random.default_rng(_SEED)
    for number in range(files):
        with (folder / f"part-{number}").open("wb") as file:
            for _ in range(points):
                place = chance.integers(0, _ONE - _ONE // _SPREAD)
                file.write(_fractions(place + chance.integers(0, _ONE // _SPREAD, dimensions)))


def write_labeled(folder: Path, files: int, dimensions: int) -> None:
    """Write a line to each file: 1 or -1, and `dimensions` numbers from 0 to 1.

    The first two have the same numbers and another label: no plane divides them, so that a regression goes on.
    """
    folder.mkdir()
    for number in range(files):
        chance = np.random.default_rng(_SEED + max(number, 1))
        label = b"1 " if number % 2 else b"-1 "
        (folder / f"part-{number}").write_bytes(label + _fractions(chance.integers(0, _ONE, dimensions)))


def write_documents(folder: Path, files: int, documents: int, words: int, vocabulary: int) -> None:
    """Write `documents` lines in libsvm's format to each file: each of `words` words out of `vocabulary`."""
    folder.mkdir(parents=True)
    chance = np.random.default_rng(_SEED)
    for number in range(files):
        with (folder / f"part-{number}").open("w") as file:
            # Spark takes the highest number that it sees for the size of the vocabulary.
            file.write(f"0 {vocabulary}:1\n")
            for line in range(1, documents):
                drawn = np.unique(chance.integers(1, vocabulary + 1, words))
                counts = chance.integers(1, 5, len(drawn))
                pairs = " ".join(f"{word}:{count}" for word, count in zip(drawn, counts, strict=True))
                file.write(f"{line} {pairs}\n")


def _fractions(values: NDArray[np.int64]) -> bytes:
    """Return a line like `.0000123 .0000456` of 123 and 456."""
    text: NDArray[np.uint8] = np.empty((len(values), _DIGITS + 2), np.uint8)
    text[:, 0], text[:, -1] = ord("."), ord(" ")
    for place in range(_DIGITS):
        text[:, _DIGITS - place] = ord("0") + values // 10**place % 10
    text[-1, -1] = ord("\n")
    return text.tobytes()
