"""The pictures of the balanced multicast's evaluation, from rows with planned rates and, where there are, measured."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from blast_sim.base.report import Row
from blast_sim.figures.drawings import COLOURS, GREY, MARKERS

MEGABIT = 1e6

_LINES = ("-", "--")

_WORDS = {
    "semi-flat": "semi-flat tree",
    "bottleneck": "maximum-bottleneck tree",
    "fpfr": "FPFR, not shaped",
    "balanced": "balanced: FPFR and linear programme",
    "exact": "exact: the theoretical maximum",
}


def for_each_root(figure: Figure, rows: Sequence[Row]) -> None:
    """Figure 7 of the paper: throughput by root and method. Bars are planned, dots measured."""
    figure.set_size_inches(10.0, 5.0)
    axes = figure.subplots()
    roots = list(dict.fromkeys(row["root"] for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    width = 0.84 / len(methods)
    for number, method in enumerate(methods):
        own = [row for row in rows if row["method"] == method]
        places = [roots.index(row["root"]) - 0.42 + width * (number + 0.5) for row in own]
        heights = [row["planned"] / MEGABIT for row in own]
        axes.bar(places, heights, width * 0.92, color=COLOURS[number], label=_WORDS[method])
        _measured(axes, places, own, color="black", marker="o")
    axes.set_xticks(range(len(roots)), roots)
    axes.tick_params(axis="x", length=0)
    axes.margins(x=0.02)
    axes.set(xlabel="root", ylabel="throughput, Mbit/s (bars: planned)", ylim=(0, None))
    axes.set_title(f"Multicast between {len(roots)} sites of uneven links (paper: Figure 7)", loc="left")
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    _explain_dots(axes, rows)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)


def with_clusters(figure: Figure, rows: Sequence[Row]) -> None:
    """Figure 8 of the paper: throughput against nodes a cluster. Lines are planned, markers measured; rows with `from`
    are the paper's points."""
    axes = figure.subplots()
    own = [row for row in rows if "from" not in row]
    for number, clusters in enumerate(dict.fromkeys(row["clusters"] for row in own)):
        line = sorted((row for row in own if row["clusters"] == clusters), key=lambda row: row["nodes"])
        nodes, colour = [row["nodes"] for row in line], COLOURS[number]
        rates = [row["planned"] / MEGABIT for row in line]
        style = _LINES[number % len(_LINES)]
        axes.plot(nodes, rates, style, color=colour, label=f"{clusters} clusters, planned", linewidth=1.5)
        # Side by side, as where no path is the limit they would hide each other.
        places = [node + 0.12 * number - 0.06 for node in nodes]
        _measured(axes, places, line, color=colour, marker=MARKERS[number], label=f"{clusters} clusters, measured")
        limit = line[0]["wide_area"] / MEGABIT
        axes.axhline(limit, color=colour, linestyle=":", linewidth=1)
        words = f"wide-area path, {limit:g} Mbit/s"
        axes.annotate(words, (nodes[0], limit), (0, 3), textcoords="offset points", color=colour, fontsize=8)
    _papers(axes, [row for row in rows if "from" in row])
    axes.set(xlabel="nodes a cluster", ylabel="throughput, Mbit/s", ylim=(0, None))
    axes.set_xticks(sorted({row["nodes"] for row in own}))
    axes.set_title("Multicast between clusters, interfaces and paths at a tenth (paper: Figure 8)", loc="left")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)


def _measured(axes: Axes, places: Sequence[float], rows: Sequence[Row], **style: str) -> None:
    """Means, with lines from the least to the most."""
    found = [(place, row) for place, row in zip(places, rows, strict=True) if "measured" in row]
    if not found:
        return
    means = [row["measured"] / MEGABIT for _, row in found]
    below = [mean - row["least"] / MEGABIT for mean, (_, row) in zip(means, found, strict=True)]
    above = [row["most"] / MEGABIT - mean for mean, (_, row) in zip(means, found, strict=True)]
    axes.errorbar(
        [place for place, _ in found],
        means,
        [below, above],
        linestyle="",
        markersize=5,
        markeredgecolor="white",
        capsize=2,
        zorder=3,
        **style,  # type: ignore[arg-type]
    )


def _explain_dots(axes: Axes, rows: Sequence[Row]) -> None:
    """One entry for all dots."""
    if any("measured" in row for row in rows):
        axes.plot([], [], "o", color="black", markeredgecolor="white", label="measured")


def _papers(axes: Axes, rows: Sequence[Row]) -> None:
    for number, row in enumerate(rows):
        place = (row["nodes"], row["measured"] / MEGABIT)
        label = "" if number else "printed in the paper, at a tenth"
        axes.plot(*place, linestyle="", color="black", marker="X", markersize=8, label=label, zorder=2.5)
        words = row["from"].rpartition(": ")[2]
        axes.annotate(words, place, (7, -12), textcoords="offset points", color=GREY, fontsize=8)
