"""The pictures of the pipeline's evaluation, from rows with means and halves of confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from blast_sim.drawings import COLOURS, GREY, MARKERS
from blast_sim.measurements import Row

_WORDS = {"ordered": "ordered by racks", "random": "random order", "disk": "ordered, to disk"}


def against_receivers(figure: Figure, rows: Sequence[Row]) -> None:
    """Figures 7, 10 and 11 of the paper in one: share of a link's rate against receivers."""
    axes = figure.subplots()
    _lines(axes, rows, "share")
    _papers(axes, rows)
    axes.set(xlabel="receivers", ylabel="size ÷ time, share of a host's link", ylim=(0, 1.05))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, 0))
    axes.set_title(f"Pipeline against receivers, {_links(rows)} (paper: IV-A, C, D; 95 % intervals)", loc="left")
    _finish(figure, axes)


def of_sites(figure: Figure, rows: Sequence[Row]) -> None:
    """Figure 13 of the paper: every receiver but the first is on a site of its own."""
    axes = figure.subplots()
    _lines(axes, rows, "share")
    axes.set(xlabel="receivers, from the second on each 16 ms from the others", ylim=(0, 1.05))
    axes.set_ylabel("size ÷ time, share of a host's link")
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, 0))
    axes.set_title(f"Pipeline over distant sites, {_links(rows)} (paper: IV-E; 95 % intervals)", loc="left")
    _finish(figure, axes)


def in_seconds(figure: Figure, rows: Sequence[Row]) -> None:
    """Figure 14 of the paper: time for a small file, links as fast as the machine."""
    axes = figure.subplots()
    _lines(axes, rows, "seconds")
    axes.set(xlabel="receivers", ylabel="seconds to the last verified file", ylim=(0, None))
    size = f"{rows[0]['bytes'] / 1e6:g} MB"
    axes.set_title(f"A small file of {size}, links not limited (paper: IV-F; 95 % intervals)", loc="left")
    _finish(figure, axes)


def of_failures(figure: Figure, rows: Sequence[Row]) -> None:
    """Figure 15 of the paper: throughput while nodes die."""
    axes = figure.subplots()
    own = [row for row in rows if "from" not in row]
    places = range(len(own))
    shares, halves = [row["share"] for row in own], [row["share_half"] for row in own]
    axes.bar(places, shares, yerr=halves, color=COLOURS[0], width=0.6, capsize=3)
    for place, row in zip(places, own, strict=True):
        axes.annotate(f"{row['megabytes_per_second']:.2f} MB/s", (place, 0.02), ha="center", color="white", fontsize=7)
    _papers(axes, rows)
    axes.set_xticks(places, [_in_lines(row["scenario"]) for row in own], fontsize=8)
    axes.set(ylabel="size ÷ time of the others, share of a host's link", ylim=(0, 1.05))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, 0))
    nodes = f"{own[0]['nodes']} nodes, {own[0]['bytes'] / 1e6:g} MB" if own else ""
    axes.set_title(f"Nodes that die, {nodes}, {_links(own)} (paper: IV-G; 95 % intervals)", loc="left")
    axes.grid(axis="y", alpha=0.3)
    if any("from" in row for row in rows):
        figure.legend(loc="outside lower center", frameon=False)


def _lines(axes: Axes, rows: Sequence[Row], column: str) -> None:
    own = [row for row in rows if "from" not in row]
    for number, (scenario, tool) in enumerate(dict.fromkeys((row["scenario"], row["tool"]) for row in own)):
        line = sorted(
            (row for row in own if (row["scenario"], row["tool"]) == (scenario, tool)), key=lambda row: row["receivers"]
        )
        words = _WORDS.get(scenario)
        axes.errorbar(
            [row["receivers"] for row in line],
            [row[column] for row in line],
            [row[f"{column}_half"] for row in line],
            color=COLOURS[number % len(COLOURS)],
            marker=MARKERS[number % len(MARKERS)],
            markersize=4,
            capsize=3,
            label=f"{line[0]['title']}, {words}" if words else line[0]["title"],
        )


def _papers(axes: Axes, rows: Sequence[Row]) -> None:
    """The paper's own figures, as lines across: the text gives them for no number of receivers."""
    for row in rows:
        if "from" in row:
            axes.axhline(row["share"], color=GREY, linestyle="--", label=row["from"])


def _in_lines(scenario: str) -> str:
    """`10 % one after the other`, narrow enough for a bar."""
    return scenario.replace(" % ", " %\n").replace(" the other", "\nthe other")


def _links(rows: Sequence[Row]) -> str:
    rates = sorted({row["rate_mbps"] for row in rows if row.get("rate_mbps")})
    return " and ".join(f"{rate:g}" for rate in rates) + " Mbit/s"


def _finish(figure: Figure, axes: Axes) -> None:
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
