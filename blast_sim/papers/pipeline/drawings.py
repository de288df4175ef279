"""The pictures of the pipeline's evaluation beside other tools, from the rows of `pipeline_rows`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator, PercentFormatter
from matplotlib.transforms import ScaledTranslation, Transform

from blast_sim.base.report import Row
from blast_sim.papers.drawings import COLORS, GRAY, MARKERS
from blast_sim.papers.pipeline.rows import notes

TOOLS = ("pipeline", "udpcast", "taktuk-chain", "taktuk-tree", "mpi", "naive")
"""A tool has the same color in every picture."""
_ORDERED = "ordered"
_ASIDE_INCHES = 0.035


def of_shares(title: str) -> Callable[[Figure, Sequence[Row]], None]:
    """Return a drawing of scenarios with shaped links: the share of a link's rate after start-up, and start-up.

    Rows with `from` are the paper's own figures, as lines across. Of two scenarios the ordered one is dashed.
    """

    def draw(figure: Figure, rows: Sequence[Row]) -> None:
        own, panels = _panels(figure, rows)
        _lines(panels[0], own, "share")
        _bounds(panels[0], own)
        for row in rows:
            if "from" in row:
                panels[0].axhline(row["share"], color=GRAY, linestyle="--", label=row["from"])
        panels[0].yaxis.set_major_formatter(PercentFormatter(1.0, 0))
        panels[0].set(ylabel="size ÷ time from the first byte on, share of a host's link", ylim=(0, 1.05))
        _lines(panels[1], own, "start_seconds")
        panels[1].set(ylabel="start-up: seconds until the first byte is anywhere", ylim=(0, None))
        _finish(figure, panels, own, f"{title}, {_links(own)}")

    return draw


def of_rates(figure: Figure, rows: Sequence[Row]) -> None:
    """Draw Figures 8 and 9 of the paper: rates on links as fast as the machine, and processor time per byte."""
    own, panels = _panels(figure, rows)
    _lines(panels[0], own, "megabytes_per_second")
    _bounds(panels[0], own)
    panels[0].set(ylabel="MB/s: size ÷ time from the first byte on", yscale="log")
    _plain_log(panels[0])
    _lines(panels[1], own, "processor_ns")
    panels[1].set(ylabel="processor time: ns for each byte of each copy", yscale="log")
    _plain_log(panels[1])
    size = f"{own[0]['bytes'] / 1e6:g} MB"
    _finish(figure, panels, own, f"Links not limited, all hosts on one machine, {size} (paper: IV-B)")


def _panels(figure: Figure, rows: Sequence[Row]) -> tuple[list[Row], Sequence[Axes]]:
    figure.set_size_inches(10.0, 5.4)
    own = [row for row in rows if "from" not in row]
    return own, figure.subplots(1, 2, width_ratios=(3, 2))


def _lines(axes: Axes, rows: Sequence[Row], column: str) -> None:
    _make_room(axes, rows, column)
    scenarios = list(dict.fromkeys(row["scenario"] for row in rows))
    for scenario, tool in dict.fromkeys((row["scenario"], row["tool"]) for row in rows):
        line = sorted(
            (row for row in rows if (row["scenario"], row["tool"]) == (scenario, tool) and row.get(column) is not None),
            key=lambda row: row["receivers"],
        )
        if not line:
            continue
        beside = len(scenarios) > 1 and scenario == _ORDERED
        axes.errorbar(
            [row["receivers"] for row in line],
            [row[column] for row in line],
            [row[f"{column}_half"] for row in line],
            color=color(tool),
            marker=marker(tool),
            linestyle="--" if beside else "-",
            markersize=4,
            elinewidth=0.8,
            capsize=2,
            transform=_beside(axes, tool),
            label=f"{line[0]['title']}{', ordered by racks' if beside else ''}",
        )


def _make_room(axes: Axes, rows: Sequence[Row], column: str) -> None:
    """Extend the axes to all points and the upper halves of intervals: shifted points do not extend them."""
    for row in rows:
        if row.get(column) is not None:
            axes.update_datalim([(row["receivers"], row[column] + half) for half in (0, row[f"{column}_half"])])
    axes.autoscale_view()


def _beside(axes: Axes, tool: str) -> Transform:
    """Return a transform that shifts a tool's points sideways, so that intervals do not lie on each other."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    aside = (TOOLS.index(tool) - len(TOOLS) // 2 if tool in TOOLS else 0) * _ASIDE_INCHES
    return axes.transData + ScaledTranslation(aside, 0, figure.dpi_scale_trans)


def _bounds(axes: Axes, rows: Sequence[Row]) -> None:
    """Draw a hollow mark for each tool that exceeded the time limit, at its upper bound."""
    text = set[str]()
    for row in rows:
        if row["late"]:
            name = row["title"].partition(",")[0]
            label = "" if row["tool"] in text else f"{name}: slower than this, not done in {row['limit_seconds']:g} s"
            text.add(row["tool"])
            axes.plot(
                row["receivers"],
                row["bound"],
                "v",
                color=color(row["tool"]),
                markerfacecolor="none",
                markersize=8,
                label=label,
            )


def color(tool: str) -> str:
    """Return the color of a tool, the same in every picture."""
    return COLORS[_place(tool) % len(COLORS)]


def marker(tool: str) -> str:
    """Return the marker of a tool, the same in every picture."""
    return MARKERS[_place(tool) % len(MARKERS)]


def _place(tool: str) -> int:
    return TOOLS.index(tool) if tool in TOOLS else len(TOOLS)


def _links(rows: Sequence[Row]) -> str:
    rates = sorted({row["rate_mbps"] for row in rows if row["rate_mbps"]})
    return " and ".join(f"{rate:g}" for rate in rates) + " Mbit/s"


def _plain_log(axes: Axes) -> None:
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(FuncFormatter(lambda value, _: f"{value:g}" if f"{value:g}"[0] in "25" else ""))


def _finish(figure: Figure, panels: Sequence[Axes], rows: Sequence[Row], title: str) -> None:
    for axes in panels:
        axes.xaxis.set_major_locator(FixedLocator(sorted({row["receivers"] for row in rows})))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel("receivers")
        axes.margins(x=0.1)
        axes.grid(alpha=0.3)
    finish(figure, panels[0], rows, title)


def finish(figure: Figure, axes: Axes, rows: Sequence[Row], title: str) -> None:
    """Add title, legend and notes."""
    figure.suptitle(f"{title}; means, 95 % intervals", fontsize="medium")
    text = "\n".join(notes(rows))
    # Tools first, then other entries.
    entries = sorted(
        zip(*axes.get_legend_handles_labels(), strict=True), key=lambda entry: isinstance(entry[0], Line2D)
    )
    handles, labels = zip(*entries, strict=True) if entries else ((), ())
    figure.legend(
        handles, labels, loc="outside lower center", ncols=3, frameon=False, title=text, title_fontsize="small"
    )
