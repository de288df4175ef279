"""The figure of failing nodes in the pipeline's evaluation, with a bar per kind of failure."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from blast_sim.base.report import Row
from blast_sim.papers.drawings import COLORS, GRAY

_GROUP = 0.84
"""Share of the distance between two scenarios that the bars take."""
_WORDS = {
    "none": "no failure",
    "killed": "killed: connections are reset at once",
    "frozen": "frozen: acknowledges, and is silent",
    "vanished": "vanished: link cut, no packet passes",
}


def of_failures(figure: Figure, rows: Sequence[Row]) -> None:
    """Draw Figure 15 of the paper: throughput while nodes fail, by scenario and failure mode.

    Rows with `from` are the paper's own figures, as lines across.
    """
    axes = figure.subplots()
    own = [row for row in rows if "from" not in row]
    scenarios = list(dict.fromkeys(row["scenario"] for row in own))
    for number, way in enumerate(dict.fromkeys(row["way"] for row in own)):
        some = [row for row in own if row["way"] == way]
        places, widths = zip(*(_place(row, own, scenarios) for row in some), strict=True)
        axes.bar(
            places,
            [row["share"] for row in some],
            yerr=[row["share_half"] for row in some],
            width=widths,
            color=COLORS[number % len(COLORS)],
            edgecolor="white",
            capsize=3,
            label=_WORDS.get(way, way),
        )
        for place, row in zip(places, some, strict=True):
            rate = f"{row['megabytes_per_second']:.2f} MB/s"
            axes.annotate(rate, (place, 0.02), ha="center", color="white", fontsize="x-small", rotation="vertical")
    for row in rows:
        if "from" in row:
            axes.axhline(row["share"], color=GRAY, linestyle="--", label=row["from"])
    axes.set_xticks(range(len(scenarios)), [_in_lines(scenario) for scenario in scenarios], fontsize="small")
    axes.set(ylabel="size ÷ time of the others, share of a host's link", ylim=(0, 1.05))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, 0))
    axes.set_title(f"Nodes that fail, {_setting(own)} (paper: IV-G; 95 % intervals)", loc="left", fontsize="medium")
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    figure.legend(loc="outside lower center", ncols=2, frameon=False)


def _place(row: Row, own: Sequence[Row], scenarios: Sequence[str]) -> tuple[float, float]:
    """Return the center and width of a row's bar: as wide as if every scenario had the maximum number of bars."""
    beside = {scenario: [one["way"] for one in own if one["scenario"] == scenario] for scenario in scenarios}
    width = _GROUP / max(map(len, beside.values()))
    bars = beside[row["scenario"]]
    return scenarios.index(row["scenario"]) + width * (bars.index(row["way"]) - (len(bars) - 1) / 2), width


def _in_lines(scenario: str) -> str:
    """Break `10 % one after the other` into lines that are narrow enough for a group of bars."""
    return scenario.replace(" % ", " %\n").replace(" the other", "\nthe other")


def _setting(own: Sequence[Row]) -> str:
    settings = dict.fromkeys(
        f"{row['nodes']} nodes, {row['bytes'] / 1e6:g} MB, links of {row['rate_mbps']:g} Mbit/s" for row in own
    )
    runs = sorted({row["runs"] for row in own})
    counted = f"{runs[0]} runs" if len(runs) == 1 else f"{runs[0]} to {runs[-1]} runs"
    return f"{'; '.join(settings)}, {counted}"
