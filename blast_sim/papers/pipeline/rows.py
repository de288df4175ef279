"""The rows of pipeline figures: means with halves of their 95 % confidence intervals."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from blast_sim.base.confidence import half_width
from blast_sim.base.report import Row

COLUMNS = (
    "scenario",
    "tool",
    "title",
    "receivers",
    "rate_mbps",
    "bytes",
    "limit_seconds",
    "seconds",
    "start_seconds",
    "processor_seconds",
    "others_share",
    "failures",
    "late",
    "left_out",
)
"""Required columns; `late` counts runs that exceeded the time limit."""
DISTURBED = 0.1
"""Share of the machine used by other load from which a note is added."""
ONE_MACHINE = (
    "One machine is sender, receivers and network at once: the tool with the least CPU time per byte is fastest, "
    "and a copy for each receiver loads no link."
)
ONE_START = (
    "All hosts start on the processors of one machine, and start-up traffic uses these slow links: "
    "start-up costs are clearer with unlimited links."
)

_KEPT = ("scenario", "section", "tool", "title", "receivers", "rate_mbps", "bytes", "limit_seconds", "late", "left_out")


def scenario_summary(row: Row) -> Row:
    """Return means of the total time, start-up, the transfer after it, and its rate, also as a share of a host's link.

    The processor's nanoseconds are those for each byte of each copy. Of a tool that was late once there are no figures
    but `bound`: the share of the link, or the rate in MB/s where there is none, that it stayed below.
    """
    kept = {name: row.get(name) for name in _KEPT} | {"failed": len(row["failures"])}
    megabytes, link = row["bytes"] / 1e6, row["rate_mbps"] / 8 if row["rate_mbps"] else None
    if row["late"]:
        return {**kept, "runs": 0, "bound": megabytes / row["limit_seconds"] / (link or 1)}
    if not row["seconds"]:
        return {**kept, "runs": 0}
    transfers = [whole - start for whole, start in zip(row["seconds"], row["start_seconds"], strict=True)]
    rates = [megabytes / seconds for seconds in transfers]
    copied = row["bytes"] * row["receivers"]
    return {
        **kept,
        "runs": len(rates),
        **_mean("seconds", row["seconds"]),
        **_mean("start_seconds", row["start_seconds"]),
        **_mean("transfer_seconds", transfers),
        **_mean("megabytes_per_second", rates),
        **(_mean("share", [rate / link for rate in rates]) if link else {}),
        **_mean("processor_ns", [seconds * 1e9 / copied for seconds in row["processor_seconds"]]),
        **({"others_share": max(row["others_share"])} if row["others_share"] else {}),
    }


def drawn(rows: Iterable[Row]) -> list[Row]:
    """Return the rows with information: measured, late, or left out with a reason."""
    return [row for row in rows if row["runs"] or row["late"] or row["left_out"] or row["failed"]]


def notes(rows: Sequence[Row]) -> list[str]:
    """Return notes on the machine, on tools that were left out or failed, and on other load."""
    # A late tool with fewer receivers has a mark in the figure.
    late = {(row["scenario"], row["tool"]) for row in rows if row["late"]}
    sentences = [ONE_START if all(row["rate_mbps"] for row in rows) else ONE_MACHINE]
    sentences += [
        f"{row['title']} is left out: {row['left_out']}."
        for row in rows
        if row["left_out"] and (row["scenario"], row["tool"]) not in late
    ]
    sentences += [
        f"{row['title']}, {row['receivers']} receivers: {row['failed']} of {row['runs'] + row['failed']} runs failed."
        for row in rows
        if row["failed"]
    ]
    others = max((row.get("others_share", 0.0) for row in rows), default=0.0)
    if others > DISTURBED:
        sentences.append(
            f"Other work had up to {others * 100:.0f} % of the machine's processors while this was measured."
        )
    return list(dict.fromkeys(sentences))


def _mean(name: str, values: Sequence[float]) -> Row:
    return {name: statistics.mean(values), f"{name}_half": half_width(values)} if values else {}
