"""The results of a replay as tables, for CSV and Parquet."""

from __future__ import annotations

from collections.abc import Sequence

from blast_sim.base.report import Row

POLICIES, CDF, COMPLETIONS = "replay", "replay-cdf", "replay-completions"


def tables(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return a row for each policy, the cumulative distribution of completion times, and a row for each multicast."""
    return {
        POLICIES: [{key: value for key, value in row.items() if key != "completions"} for row in rows],
        CDF: [one for row in rows for one in _distribution(row)],
        COMPLETIONS: [{"policy": row["policy"], **one} for row in rows for one in row["completions"]],
    }


def _distribution(row: Row) -> list[Row]:
    """Return a policy's completion times (seconds) in order, each with the share of multicasts that take no longer."""
    seconds = sorted(one["seconds"] for one in row["completions"])
    return [
        {"policy": row["policy"], "seconds": value, "share": place / len(seconds)}
        for place, value in enumerate(seconds, start=1)
    ]
