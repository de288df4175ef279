"""Processor time, user's and system's, and what two engines take of it."""

from __future__ import annotations

import resource
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from median_interval import median_interval

from blast_transport.base.engines import COMPILED, PYTHON


@dataclass(frozen=True, slots=True)
class Cost:
    """Processor seconds."""

    user: float
    system: float

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.user - other.user, self.system - other.system)

    def __truediv__(self, number: float) -> Cost:
        return Cost(self.user / number, self.system / number)

    @property
    def both(self) -> float:
        """User and system."""
        return self.user + self.system


def used_by(whom: int) -> Cost:
    """Until now, by `resource.RUSAGE_THREAD` or another of these."""
    used = resource.getrusage(whom)
    return Cost(used.ru_utime, used.ru_stime)


def engines_compared(taken: Mapping[str, Sequence[Cost]], stages: Sequence[str]) -> dict[str, Any]:
    """For rows of both engines, and of those `stages` alone that both have to do, pair by pair.

    `beside_stages` is the median of an engine's user seconds that are none of these.
    """
    low, ratio, high = median_interval(
        [new.both / old.both for old, new in zip(taken[PYTHON], taken[COMPILED], strict=True)]
    )
    return {
        "seconds_per_gb": {name: asdict(_median(costs)) for name, costs in taken.items()},
        "beside_stages": {engine: _beside(taken, engine, stages) for engine in (PYTHON, COMPILED)},
        "ratio": ratio,
        "interval": [low, high],
    }


def compared_line(row: Mapping[str, Any]) -> str:
    """For people, what `engines_compared` found."""
    spent, beside = row["seconds_per_gb"], row["beside_stages"]
    parts = ", ".join(f"{name} {cost['user']:.3f} + {cost['system']:.3f}" for name, cost in spent.items())
    low, high = row["interval"]
    return (
        f"{parts}; compiled / python x {row['ratio']:.3f} ({low:.3f}-{high:.3f}); user beside what both do "
        f"{beside[PYTHON]:.3f} -> {beside[COMPILED]:.3f}"
    )


def is_kept(row: Mapping[str, Any], bar: float) -> bool:
    """It costs less, and of the user time beside what both do at most this part of Python's is left."""
    beside = row["beside_stages"]
    return bool(row["interval"][1] < 1 and beside[COMPILED] <= bar * beside[PYTHON])


def _beside(taken: Mapping[str, Sequence[Cost]], engine: str, stages: Sequence[str]) -> float:
    pairs = zip(taken[engine], *(taken[stage] for stage in stages), strict=True)
    return float(statistics.median(whole.user - sum(stage.user for stage in alone) for whole, *alone in pairs))


def _median(costs: Sequence[Cost]) -> Cost:
    return Cost(statistics.median(one.user for one in costs), statistics.median(one.system for one in costs))
