"""What the table of a replay shows, in words."""

from __future__ import annotations

from collections.abc import Sequence

from algorithms.scheduling import DEFAULT
from blast_sim.base.report import Row

SAME = 0.01
"""Share by which values may differ and still be called the same."""
MEASURES = {"mean_seconds": "mean", "p99_seconds": "99th percentile", "longest_seconds": "longest"}


def seen(rows: Sequence[Row]) -> str:
    """Return which policy is shortest and longest by each measure, and by which the default is not the best.

    With one policy there is nothing to compare, and the text is empty.
    """
    if len(rows) < 2:
        return ""
    if all(_spread(rows, column) <= 1 + SAME for column in MEASURES):
        return (
            "All policies took the same: every multicast found a free splitter. "
            "Take fewer --splitters, or `contended` instead of `sample`, to see them differ.\n"
        )
    return "".join(_compared(rows, column, name) for column, name in MEASURES.items()) + _where_default_is_worse(rows)


def _compared(rows: Sequence[Row], column: str, name: str) -> str:
    ordered = sorted(rows, key=lambda row: row[column])
    least, most = ordered[0], ordered[-1]
    return (
        f"{name}: {_all_of(rows, column, least[column])} shortest with {least[column]:.3g} s, "
        f"{_all_of(rows, column, most[column])} longest with {most[column]:.3g} s, "
        f"{_spread(rows, column):.1f} times as long.\n"
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
    least = min(values)
    return float(max(values) / least) if least > 0 else 1.0
