"""Mean and tail of the completion times, by policy."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from blast_sim.base.report import Row
from blast_sim.figures.drawings import COLOURS, GREY
from blast_sim.replay.seen import seen

MEASURES = (
    ("mean_seconds", "mean", "o"),
    ("median_seconds", "median", "D"),
    ("p95_seconds", "95th percentile", "s"),
    ("p99_seconds", "99th percentile", "^"),
    ("longest_seconds", "longest", "_"),
)


def by_policy(figure: Figure, rows: Sequence[Row]) -> None:
    """A column for each policy, a mark for each measure."""
    axes = figure.subplots()
    places = range(len(rows))
    axes.vlines(
        places, [row["median_seconds"] for row in rows], [row["longest_seconds"] for row in rows], color=GREY, alpha=0.5
    )
    for colour, (column, label, marker) in zip(COLOURS, MEASURES, strict=False):
        axes.plot(places, [row[column] for row in rows], marker, color=colour, label=label)
    axes.set_yscale("log")
    axes.set_xticks(places, [row["policy"] for row in rows])
    axes.margins(x=0.1)
    axes.set_ylabel("completion time, s")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(FuncFormatter(lambda value, _: f"{value:g}" if f"{value:.0e}"[0] in "235" else ""))
    axes.grid(axis="y", which="both", alpha=0.3)
    told = seen(rows).splitlines()[:1]
    axes.set_title("\n".join(["Completion of the multicasts of the trace", *told]), loc="left", fontsize=9)
    figure.legend(loc="outside lower center", ncols=len(MEASURES), frameon=False)
