"""Completion times by policy: mean and tail, and their distribution."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from blast_sim.base.report import Row
from blast_sim.papers.drawings import COLORS, GRAY
from blast_sim.replay.seen import seen

DASHES = ("-", "--", ":", "-.")
MEASURES = (
    ("mean_seconds", "mean", "o"),
    ("median_seconds", "median", "D"),
    ("p95_seconds", "95th percentile", "s"),
    ("p99_seconds", "99th percentile", "^"),
    ("longest_seconds", "longest", "_"),
)


def by_policy(figure: Figure, rows: Sequence[Row]) -> None:
    """Draw a column for each policy, with a mark for each measure."""
    axes = figure.subplots()
    places = range(len(rows))
    axes.vlines(
        places, [row["median_seconds"] for row in rows], [row["longest_seconds"] for row in rows], color=GRAY, alpha=0.5
    )
    for color, (column, label, marker) in zip(COLORS, MEASURES, strict=False):
        axes.plot(places, [row[column] for row in rows], marker, color=color, label=label)
    axes.set_yscale("log")
    axes.set_xticks(places, [row["policy"] for row in rows])
    axes.margins(x=0.1)
    axes.set_ylabel("completion time, s")
    _name_ticks(axes.yaxis)
    axes.grid(axis="y", which="both", alpha=0.3)
    summary = seen(rows).splitlines()[:1]
    axes.set_title("\n".join(["Completion of the multicasts of the trace", *summary]), loc="left", fontsize="medium")
    figure.legend(loc="outside lower center", ncols=len(MEASURES), frameon=False)


def distributions(figure: Figure, rows: Sequence[Row]) -> None:
    """Draw a line for each policy, with a step for each multicast: the share of multicasts that take no longer."""
    axes = figure.subplots()
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    for place, policy in enumerate(policies):
        own = [row for row in rows if row["policy"] == policy]
        seconds, shares = [row["seconds"] for row in own], [100 * row["share"] for row in own]
        # Color and dashes, so that lines differ in print, too.
        axes.step(
            [seconds[0], *seconds],
            [0.0, *shares],
            where="post",
            color=COLORS[place % len(COLORS)],
            linestyle=DASHES[place % len(DASHES)],
            label=policy,
        )
    axes.set_xscale("log")
    axes.set_xlabel("completion time, s")
    axes.set_ylabel("multicasts that take no longer, %")
    axes.set_ylim(0, 100)
    _name_ticks(axes.xaxis)
    axes.grid(which="major", alpha=0.3)
    axes.set_title("Distribution of the completion times of the trace's multicasts", loc="left", fontsize="medium")
    figure.legend(loc="outside lower center", ncols=4, frameon=False)


def _name_ticks(axis: Axis) -> None:
    """Label the ticks of a logarithmic axis with numbers without powers."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(FuncFormatter(lambda value, _: f"{value:g}" if f"{value:.0e}"[0] in "235" else ""))
