"""The pictures of the balanced multicast's evaluation, from rows with planned rates and, if available, measured."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from algorithms.balanced.fpfr import DEFAULT_ORDER, ORDERS
from blast_sim.base.report import Row
from blast_sim.papers.balanced.random_networks import PAPERS_GAIN, SHARES, gain
from blast_sim.papers.drawings import COLORS, GRAY, MARKERS, PAPERS_MARKERS

MEGABIT = 1e6

_LINES = ("-", "--", ":")

_LABELS = {
    "semi-flat": "semi-flat tree",
    "bottleneck": "maximum-bottleneck tree",
    "fpfr": "FPFR, not shaped",
    "balanced": "balanced: FPFR and linear program",
    "exact": "exact: the theoretical maximum",
}
_SHARE_LABELS = {
    "balanced_not_below_others": "balanced ≥ all\nothers (cases)",
    "balanced_above_all": "balanced > all\nothers (cases)",
    "balanced_above_all_at_every_root": "… at every root\n(networks)",
    "fpfr_below_single": "FPFR < a single\ntree (cases)",
    "fpfr_below_single_at_some_root": "… at some root\n(networks)",
    "balanced_optimal": "balanced optimal\n(cases)",
}

SYNTHETIC = (
    "synthetic sites, chosen so that the paper's claims hold on them with the order widest; the paper prints no rates"
)
RESAMPLED = "rates resampled from the eight synthetic sites"
ASSUMED = "assumed: min(nodes × interface, path)"
PLANNED = "planned: min(nodes × interface, path)"


# ------------------------------------------------------------------------------------------------- eight sites


def for_each_root(figure: Figure, rows: Sequence[Row]) -> None:
    """Draw Figure 7 of the paper: throughput by root and method, a panel for each order of FPFR.

    Bars are planned rates and dots measured ones. With the order `random` a bar is the median of the draws, and a line
    across it their range.
    """
    orders = [order for order in ORDERS if any(row["order"] == order for row in rows)]
    figure.set_size_inches(10.0, 2.2 + 2.8 * len(orders))
    panels: list[Axes] = figure.subplots(len(orders), sharex=True, sharey=True, squeeze=False)[:, 0].tolist()
    for axes, order in zip(panels, orders, strict=True):
        _roots(axes, [row for row in rows if row["order"] in {"", order}])
        axes.set_title(f"FPFR's order: {order}", loc="left", fontsize="medium")
    roots = len({row["root"] for row in rows})
    figure.suptitle(f"Multicast between {roots} sites of uneven links (paper: Figure 7)", x=0.01, ha="left")
    panels[-1].set_xlabel(f"root ({roots} {SYNTHETIC})")
    _explain_lines(panels[0], rows)
    _legend(figure, panels)


def _roots(axes: Axes, rows: Sequence[Row]) -> None:
    roots = list(dict.fromkeys(row["root"] for row in rows))
    methods = [method for method in _LABELS if any(row["method"] == method for row in rows)]
    width = 0.84 / len(methods)
    for number, method in enumerate(methods):
        own = [row for row in rows if row["method"] == method]
        places = [roots.index(row["root"]) - 0.42 + width * (number + 0.5) for row in own]
        heights = [row["planned"] / MEGABIT for row in own]
        axes.bar(places, heights, width * 0.92, color=COLORS[number], label=_LABELS[method])
        _ranges(axes, places, own, "planned", "draws", color=GRAY, linestyle="")
        _measured(axes, places, own, color="black", marker="o")
    axes.set_xticks(range(len(roots)), roots)
    axes.tick_params(axis="x", length=0)
    axes.margins(x=0.02)
    axes.set(ylabel="throughput, Mbit/s", ylim=(0, None))
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)


def _explain_lines(axes: Axes, rows: Sequence[Row]) -> None:
    """Add one legend entry for all dots, and one for all ranges."""
    if any("measured" in row for row in rows):
        axes.plot([], [], "o", color="black", markeredgecolor="white", label=f"measured (order: {DEFAULT_ORDER})")
    draws = [row["draws"] for row in rows if "draws" in row]
    if draws:
        axes.plot([], [], "-", color=GRAY, label=f"order random: median and range of {draws[0]} draws")


# ---------------------------------------------------------------------------------------------------- clusters


def with_clusters(figure: Figure, rows: Sequence[Row]) -> None:
    """Draw Figure 8 of the paper: throughput against nodes per cluster.

    Markers are measured rates. The line is a formula, and the label calls it assumed where no measurement supports it.
    Rows with `from` are the paper's points.
    """
    axes = figure.subplots()
    own = [row for row in rows if "from" not in row]
    for number, clusters in enumerate(dict.fromkeys(row["clusters"] for row in own)):
        line = sorted((row for row in own if row["clusters"] == clusters), key=lambda row: row["nodes"])
        nodes, color = [row["nodes"] for row in line], COLORS[number]
        rates = [row["planned"] / MEGABIT for row in line]
        # The first line is wide: a later one on top of it leaves its edges visible.
        width = 3.0 if number == 0 else 1.5
        axes.plot(
            nodes, rates, _LINES[number], color=color, label=f"{clusters} clusters, {line[0]['line']}", linewidth=width
        )
        # Side by side, as where no path is the limit they would hide each other.
        places = [node + 0.12 * number - 0.06 for node in nodes]
        _measured(axes, places, line, color=color, marker=MARKERS[number], label=f"{clusters} clusters, measured")
        limit = line[0]["wide_area"] / MEGABIT
        label = f"wide-area path of {clusters} clusters, {limit:g} Mbit/s"
        axes.axhline(limit, color=color, linestyle=":", linewidth=1, label=label)
    _papers(axes, [row for row in rows if "from" in row])
    axes.set(xlabel="nodes per cluster", ylabel="throughput, Mbit/s", ylim=(0, None))
    axes.set_xticks(sorted({row["nodes"] for row in own}))
    axes.set_title("Multicast between clusters, interfaces and paths at a tenth (paper: Figure 8)", loc="left")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=2, frameon=False)


def _papers(axes: Axes, rows: Sequence[Row]) -> None:
    for number, row in enumerate(rows):
        rate = row["measured"] / MEGABIT
        label = f"{row['from']}, a tenth of it here ({rate:.3g} Mbit/s)"
        marker = PAPERS_MARKERS[number % len(PAPERS_MARKERS)]
        axes.plot(row["nodes"], rate, linestyle="", color="black", marker=marker, markersize=7, label=label, zorder=2.5)


def _measured(axes: Axes, places: Sequence[float], rows: Sequence[Row], **style: str) -> None:
    """Draw the mean of the runs, and a line from the lowest to the highest."""
    _ranges(axes, places, rows, "measured", "measured", linestyle="", markeredgecolor="white", markersize=5, **style)


def _ranges(
    axes: Axes, places: Sequence[float], rows: Sequence[Row], middle: str, ends: str, **style: str | float
) -> None:
    """Draw the column `middle` of rows with `ends`_min and `ends`_max, and a line between those two."""
    found = [(place, row) for place, row in zip(places, rows, strict=True) if f"{ends}_min" in row]
    if not found:
        return
    values = [row[middle] / MEGABIT for _, row in found]
    below = [value - row[f"{ends}_min"] / MEGABIT for value, (_, row) in zip(values, found, strict=True)]
    above = [row[f"{ends}_max"] / MEGABIT - value for value, (_, row) in zip(values, found, strict=True)]
    axes.errorbar(
        [place for place, _ in found],
        values,
        [below, above],
        capsize=2,
        zorder=3,
        **style,  # type: ignore[arg-type]
    )


# --------------------------------------------------------------------------------------------- random networks


def gains(figure: Figure, rows: Sequence[Row]) -> None:
    """Draw how often balanced trees gain how much over FPFR, as a cumulative distribution over networks and roots."""
    axes = figure.subplots()
    cumulative = np.arange(1, len(rows) + 1) / len(rows)
    for number, order in enumerate(ORDERS):
        values = sorted(gain(row, order) for row in rows)
        axes.step(
            values, cumulative, _LINES[number], where="post", color=COLORS[number], label=f"FPFR's order: {order}"
        )
    axes.axvline(PAPERS_GAIN, color=GRAY, linewidth=1, label="the paper: up to 50 %")
    axes.set(xlabel="throughput of balanced trees above FPFR with the same trees", ylim=(0, 1))
    axes.set_ylabel(f"share of {len(rows)} cases ({_networks(rows)} networks, each root)")
    axes.xaxis.set_major_formatter(PercentFormatter(1.0))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_title(f"{_networks(rows)} random networks of eight sites, {RESAMPLED}", loc="left")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)


def shares(figure: Figure, rows: Sequence[Row]) -> None:
    """Draw how often the paper's claims about its Figure 7 hold on random networks, by FPFR's order."""
    # As high in the column of a paper: the rows would lie on each other.
    figure.set_size_inches(8.0, 5.6)
    axes = figure.subplots()
    width = 0.8 / len(rows)
    for number, row in enumerate(rows):
        places = [place - 0.4 + width * (number + 0.5) for place in range(len(SHARES))]
        heights = [row[name] for name in SHARES]
        bars = axes.barh(places, heights, width * 0.92, color=COLORS[number], label=f"FPFR's order: {row['order']}")
        axes.bar_label(bars, [_percent(height) for height in heights], fontsize="x-small", padding=2)
    axes.set_yticks(range(len(SHARES)), [_SHARE_LABELS[name] for name in SHARES])
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.set(xlim=(0, 1.12), xlabel=f"share of {rows[0]['cases']} cases ({rows[0]['networks']} networks, each root)")
    axes.xaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_title(f"{rows[0]['networks']} random networks of eight sites, {RESAMPLED}", loc="left")
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)


def _percent(share: float) -> str:
    """Return a share in percent; only exactly 1 is rounded to 100."""
    return f"{100 * share:.0f}" if share == 1 or share < 0.995 else f"{100 * share:.2f}"


def _networks(rows: Sequence[Row]) -> int:
    return len({row["network"] for row in rows})


def _legend(figure: Figure, panels: Sequence[Axes]) -> None:
    """Explain all panels below them; each label once."""
    entries: dict[str, Artist] = {}
    for axes in panels:
        for mark, words in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(words, mark)
    figure.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=3, frameon=False)
