"""A summary of the table of a replay."""

from __future__ import annotations

from collections.abc import Sequence

from algorithms.scheduling import DEFAULT
from blast_sim.base.report import Row

SAME = 0.01
"""Relative difference up to which values count as equal."""
MEASURES = {"mean_seconds": "mean", "p99_seconds": "99th percentile", "longest_seconds": "longest"}


def seen(rows: Sequence[Row]) -> str:
    """Return the best and worst policy by each measure, and the measures by which the default is not the best.

    Returns an empty text for a single policy.
    """
    if len(rows) < 2:
        return ""
    if all(_spread(rows, column) <= 1 + SAME for column in MEASURES):
        return (
            "All policies give the same times, because every multicast found a free splitter. "
            "Use fewer --splitters, or the trace `contended`, to compare policies.\n"
        )
    return "".join(_compared(rows, column, name) for column, name in MEASURES.items()) + _where_default_is_worse(rows)


def _compared(rows: Sequence[Row], column: str, name: str) -> str:
    ordered = sorted(rows, key=lambda row: row[column])
    best, worst = ordered[0], ordered[-1]
    return (
        f"{name}: {_all_of(rows, column, best[column])} shortest with {best[column]:.3g} s, "
        f"{_all_of(rows, column, worst[column])} longest with {worst[column]:.3g} s, "
        f"ratio {_spread(rows, column):.1f}.\n"
    )


def _where_default_is_worse(rows: Sequence[Row]) -> str:
    """Return the measures by which another policy is better than the controller's default."""
    own = next((row for row in rows if row["policy"] == DEFAULT), None)
    if own is None:
        return ""
    worse = []
    for column, name in MEASURES.items():
        best = min(row[column] for row in rows)
        if own[column] > (1 + SAME) * best:
            worse.append(f"{name} {own[column]:.3g} s against {best:.3g} s of {_all_of(rows, column, best)}")
    return f"The default policy, {DEFAULT}, is not the best here: {'; '.join(worse)}.\n" if worse else ""


def _all_of(rows: Sequence[Row], column: str, value: float) -> str:
    return " and ".join(row["policy"] for row in rows if row[column] == value)


def _spread(rows: Sequence[Row], column: str) -> float:
    values = [row[column] for row in rows]
    best = min(values)
    return float(max(values) / best) if best > 0 else 1.0
