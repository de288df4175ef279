"""Pictures of how near to the optimum an allocation is, beside the "over 99 %" that the Blast paper states."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from blast_sim.base.report import Row
from blast_sim.papers.blast.axes import legend
from blast_sim.papers.drawings import COLORS, GRAY, MARKERS, shares_of_optimum

PAPERS_SHARE = 0.99
PANELS = (
    ("apart", "racks", "No rack in two groups: volume x racks, x servers"),
    ("shared", "racks", "Racks may be shared: volume x racks"),
    ("shared", "servers", "Racks may be shared: volume x servers"),
)
"""(whether groups share racks, what volumes count, title); where they share none, both ways to count in one panel."""
PLACES = {"contig": "neighboring racks", "random": "any racks"}


def optimality(figure: Figure, rows: Sequence[Row]) -> None:
    """Draw the volume of one allocation as a share of the optimum, also on families that the paper does not have."""
    shares_of_optimum(figure, rows)
    for axes in figure.axes:
        axes.axvline(PAPERS_SHARE, color="black", linestyle=":", linewidth=1)
        axes.annotate("paper:\nover 99 %", (PAPERS_SHARE, 0.0), (-3, 3), xycoords=("data", "axes fraction"),
                      textcoords="offset points", ha="right", va="bottom", fontsize="x-small")  # fmt: skip
    figure.suptitle(
        "Volume of one allocation, share of the optimum, proven to a millionth (*: of the best known)\n"
        "Groups share racks in all of these but S36-disjoint: see blast-greedy for the paper's figure"
    )


def greedy_readings(figure: Figure, rows: Sequence[Row]) -> None:
    """Draw the paper's greedy on the paper's mixture, a panel per reading: means of seeds, bands of worst to best."""
    figure.set_size_inches(11.0, 4.8)
    panels = figure.subplots(1, len(PANELS), sharey=True)
    for axes, (racks, counted, title) in zip(panels, PANELS, strict=True):
        here = [row for row in rows if row["racks"] == racks and (racks == "apart" or row["counted"] == counted)]
        _greedy(axes, here)
        axes.axhline(PAPERS_SHARE, color="black", linestyle=":", linewidth=1, label="paper: over 99 % in all cases")
        axes.set_title(title, loc="left", fontsize="medium")
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, 0))
        axes.grid(alpha=0.3)
    worst = min(row["worst"] for row in rows if row["racks"] == "apart")
    panels[0].text(0.03, 0.85, f"worst of all seeds: {worst:.2%}", transform=panels[0].transAxes, fontsize="small")
    panels[0].set_xlabel("servers of every group, on 9 racks of 10")
    panels[0].set_ylabel("share of the optimum")
    for axes in panels[1:]:
        axes.set_xscale("log")
        axes.set_xlabel("groups of 100 to 1000 servers")
        amounts = sorted({row["amount"] for row in rows if row["racks"] == "shared"})
        axes.set_xticks(amounts, [f"{amount}" for amount in amounts])
        axes.minorticks_off()
    figure.suptitle(_title(rows))
    legend(figure, 3)


def _greedy(axes: Axes, rows: Sequence[Row]) -> None:
    series = list(dict.fromkeys((row["place"], row["counted"]) for row in rows))
    for number, (place, counted) in enumerate(series):
        own = sorted((row for row in rows if (row["place"], row["counted"]) == (place, counted)), key=_amount)
        amounts, color = [row["amount"] for row in own], COLORS[list(PLACES).index(place)]
        axes.fill_between(
            amounts, [row["worst"] for row in own], [row["best"] for row in own], color=color, alpha=0.15, linewidth=0
        )
        label = f"greedy, {PLACES[place]} (band: all seeds)"
        axes.plot(
            amounts, [row["greedy"] for row in own], color=color, marker=MARKERS[number], markersize=4, label=label
        )
        axes.plot(amounts, [row["optimizer"] for row in own], color=GRAY, marker=".", markersize=3, linewidth=1,
                  linestyle="--", label="optimizer, 50 ms")  # fmt: skip
        left = [row for row in own if row["proven"] < row["seeds"]]
        axes.plot([row["amount"] for row in left], [row["greedy"] for row in left], color=color, linestyle="",
                  marker=MARKERS[number], markersize=4, markerfacecolor="white",
                  label="hollow: of the best known, as some optima are not proven" if left else "")  # fmt: skip


def _amount(row: Row) -> int:
    amount: int = row["amount"]
    return amount


def _title(rows: Sequence[Row]) -> str:
    proven, seeds = (sum(row[column] for row in rows) for column in ("proven", "seeds"))
    return (
        "The paper's greedy on the paper's mixture of unicast and multicast (III-C.3): 200 racks, 300 MB; "
        f"{proven} of {seeds} optima proven to a millionth"
    )
