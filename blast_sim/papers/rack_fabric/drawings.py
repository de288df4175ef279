"""Drawing of a panel: its lines, and the paper's statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from blast_sim.base.report import Row
from blast_sim.papers.drawings import COLORS, MARKERS
from blast_sim.papers.rack_fabric.panel import Mark, Panel

MAX_MARKERS = 24
"""With more points a line needs none."""
STATED = "stated in the paper"
MARK_STYLE: Mapping[str, Any] = {"color": "black", "linestyle": (0, (4, 2)), "linewidth": 1.1}
STYLES = ("-", "--", ":", "-.")


def drawing(panel: Panel) -> Callable[[Figure, Sequence[Row]], None]:
    """Return a function that draws the rows of this panel."""

    def draw(figure: Figure, rows: Sequence[Row]) -> None:
        lines = list(dict.fromkeys(row["line"] for row in rows))
        facets = panel.facets or ("",)
        figure.set_size_inches(max(8.0, 4.0 * len(facets)), 5.0)
        panels = figure.subplots(1, len(facets), sharey=True, squeeze=False)[0]
        for axes, facet in zip(panels, facets, strict=True):
            own = [line for line in lines if line.startswith(facet)]
            for number, line in enumerate(own):
                points = [(row[panel.x.column], row[panel.y.column]) for row in rows if row["line"] == line]
                _line(axes, number, len(own), line.removeprefix(facet).strip(", "), points)
            _finish(axes, panel, facet)
        panels[0].set_ylabel(panel.y.label)
        for mark in panel.marks:
            _mark(panels[0], mark)
        if panel.marks:
            panels[0].plot([], [], label=STATED, **MARK_STYLE)
        heights = [*(row[panel.y.column] for row in rows), *(mark.y for mark in panel.marks)]
        panels[0].set_ylim(0, 1.08 * max(heights))
        figure.suptitle(f"{panel.title} (paper: Figure {_number(panel.name)})", x=0.01, ha="left")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=min(5, len(labels)), frameon=False)

    return draw


def _number(name: str) -> str:
    """Return the name of a figure as the paper writes it: 9(a) for 9a."""
    return name if name.isdecimal() else f"{name[:-1]}({name[-1]})"


def _line(axes: Axes, number: int, lines: int, label: str, points: Sequence[tuple[float, float]]) -> None:
    """Draw a line, wider and with larger hollow markers than those after it, which it would hide otherwise."""
    few = len(points) <= MAX_MARKERS
    below = (lines - 1 - number) * min(1.0, 4 / lines)
    axes.plot(
        [x for x, _ in points],
        [y for _, y in points],
        STYLES[number % len(STYLES)] if few else STYLES[number % 2],
        color=COLORS[number % len(COLORS)],
        marker=MARKERS[number % len(MARKERS)] if few else "",
        markersize=4 + 1.3 * below,
        markerfacecolor="none" if below else None,
        linewidth=1.2 + 0.6 * below,
        label=label,
    )


def _finish(axes: Axes, panel: Panel, facet: str) -> None:
    axes.set_xlabel(panel.x.label)
    if facet:
        axes.set_title(facet, loc="left")
    if panel.x.scale == "log2":
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.grid(alpha=0.3)


def _mark(axes: Axes, mark: Mark) -> None:
    """Draw a dashed line where the number holds, and its label above the end with more room."""
    low, high = axes.get_xlim()
    left, right = mark.span or (low, high)
    begins = left + right < low + high
    axes.plot([left, right], [mark.y, mark.y], zorder=3, **MARK_STYLE)
    axes.annotate(
        mark.words,
        (left if begins else right, mark.y),
        (0, 3),
        textcoords="offset points",
        ha="left" if begins else "right",
        fontsize="x-small",
        color="black",
        # A box and not an outline, which would turn the text of an SVG into paths.
        bbox={"facecolor": "white", "alpha": 0.5, "edgecolor": "none", "pad": 0.3},
        zorder=4,
    )
    axes.set_xlim(low, high)
