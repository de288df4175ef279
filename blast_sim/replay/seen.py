"""What the table of a replay shows, in words."""

from __future__ import annotations

from collections.abc import Sequence

from blast_sim.base.report import Row

SAME = 0.01
"""Share by which means may differ and still be called the same."""
MEASURES = {"mean_seconds": "mean", "p99_seconds": "99th percentile"}


def seen(rows: Sequence[Row]) -> str:
    """Which policy is shortest and longest, or that nothing was contended; nothing where there is one policy."""
    if len(rows) < 2:
        return ""
    if all(_spread(rows, column) <= 1 + SAME for column in MEASURES):
        return (
            "All policies took the same: whoever came found light free. "
            "Take fewer --splitters, or `contended` instead of `sample`, to see them differ.\n"
        )
    return "".join(_compared(rows, column, name) for column, name in MEASURES.items())


def _compared(rows: Sequence[Row], column: str, name: str) -> str:
    ordered = sorted(rows, key=lambda row: row[column])
    least, most = ordered[0], ordered[-1]
    return (
        f"{name}: {_all_of(rows, column, least[column])} shortest with {least[column]:.3g} s, "
        f"{_all_of(rows, column, most[column])} longest with {most[column]:.3g} s, "
        f"{_spread(rows, column):.1f} times as long.\n"
    )


def _all_of(rows: Sequence[Row], column: str, value: float) -> str:
    return " and ".join(row["policy"] for row in rows if row[column] == value)


def _spread(rows: Sequence[Row], column: str) -> float:
    values = [row[column] for row in rows]
    least = min(values)
    return float(max(values) / least) if least > 0 else 1.0
