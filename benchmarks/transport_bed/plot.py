"""The comparison as a picture: rate of a copy against receivers, one panel for each shape."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from blast_sim.figures.drawings import COLOURS, MARKERS
from transport_bed.comparison import Row
from transport_bed.shape import Shape

GREY = "#888888"


def draw(rows: Sequence[Row], path: Path, subtitle: str) -> None:
    """Write an SVG; points are medians, bars the spread of the repeats."""
    drawn = [row for row in rows if "gbps" in row]
    shapes = list(dict.fromkeys((row["shape"], row["rate_mbps"]) for row in drawn))
    tools = list(dict.fromkeys((row["tool"], row["title"]) for row in rows))
    with mpl.rc_context({"svg.hashsalt": "blast", "svg.fonttype": "none", "font.size": 9.0}):
        figure = Figure(figsize=(4.2 * len(shapes), 5.6), layout="constrained")
        panels = figure.subplots(1, len(shapes), squeeze=False, sharex=True, sharey=True)[0]
        for axes, (name, rate) in zip(panels, shapes, strict=True):
            for number, (tool, title) in enumerate(tools):
                own = [row for row in drawn if row["shape"] == name and row["tool"] == tool]
                _line(axes, own, number, title)
            _frame(axes, name, rate, sorted({row["receivers"] for row in drawn}))
        panels[0].set_ylabel("Gbit/s to each receiver: size ÷ time to the last verified file")
        figure.suptitle(subtitle, fontsize=8)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
        figure.savefig(path, metadata={"Date": None})


def _line(axes: Axes, rows: Sequence[Row], number: int, title: str) -> None:
    rows = sorted(rows, key=lambda row: row["receivers"])
    rates = [row["gbps"] for row in rows]
    fastest = [row["bytes"] * 8e-9 / min(row["seconds"]) for row in rows]
    slowest = [row["bytes"] * 8e-9 / max(row["seconds"]) for row in rows]
    # Never below zero, which is where rounding puts the spread of one run.
    spread = [
        [max(0.0, rate - slow) for rate, slow in zip(rates, slowest, strict=True)],
        [max(0.0, fast - rate) for rate, fast in zip(rates, fastest, strict=True)],
    ]
    is_floor = bool(rows) and rows[0]["tool"] == "floor"
    axes.errorbar(
        [row["receivers"] for row in rows],
        rates,
        spread,
        color=GREY if is_floor else COLOURS[number % len(COLOURS)],
        marker=MARKERS[number % len(MARKERS)],
        # More tools than colours: those of the second turn are dashed.
        linestyle="--" if number >= len(COLOURS) else "-",
        markersize=4,
        capsize=2,
        label=title,
    )


def _frame(axes: Axes, name: str, rate: float | None, receivers: Sequence[int]) -> None:
    limit = Shape(rate).udp_limit
    if limit is not None:
        axes.axhline(limit / 1e9, color=GREY, linestyle=":")
        axes.annotate("payload limit", (0.02, limit / 1e9), xycoords=("axes fraction", "data"), va="bottom", fontsize=7)
    axes.set(title=name, xlabel="receivers", xscale="log", yscale="log")
    axes.xaxis.set_major_locator(FixedLocator(list(receivers)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.grid(which="major", alpha=0.3)
