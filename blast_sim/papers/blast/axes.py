"""Common parts of the figures of flow-level simulations: lines, logarithmic axes, one legend for all panels."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from blast_sim.papers.drawings import MARKERS


def line(  # noqa: PLR0913, PLR0917
    axes: Axes,
    points: Sequence[tuple[float, float]],
    color: str,
    marker: int | None,
    label: str,
    dashes: str = "-",
    alpha: float = 1.0,
) -> None:
    """Draw a line through these points, with marker number `marker` (None: no marker); `label` may be empty."""
    axes.plot(
        [x for x, _ in points],
        [y for _, y in points],
        color=color,
        linestyle=dashes,
        marker="" if marker is None else MARKERS[marker % len(MARKERS)],
        markersize=4,
        alpha=alpha,
        label=label,
    )


def log_axes(axes: Axes, x: str, y: str, log_x: bool = True) -> None:
    """Name the axes and make them logarithmic, x only if asked; call it when everything is drawn."""
    if log_x:
        axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set(xlabel=x, ylabel=y)
    for axis, logarithmic in ((axes.xaxis, log_x), (axes.yaxis, True)):
        if logarithmic:
            low, high = axis.get_view_interval()
            # A label for each decade suffices if there are many.
            axis.set_major_locator(LogLocator(subs=_labeled(high / low), numticks=20))
            axis.set_minor_formatter(NullFormatter())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.grid(which="major", alpha=0.3)


def _labeled(ratio: float) -> tuple[float, ...]:
    """Return the parts of a decade that have a label, by the ratio of the axis ends."""
    if ratio < 30:
        return (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
    return (1.0, 2.0, 5.0) if ratio < 1000 else (1.0,)


def legend(figure: Figure, columns: int, notes: str = "") -> None:
    """Draw one legend of all panels below the picture, under `notes`."""
    panels = [axes.get_legend_handles_labels() for axes in figure.axes]
    found = {label: handle for panel in panels for handle, label in zip(*panel, strict=True)}
    if found:
        handles, labels = list(found.values()), list(found)
        figure.legend(
            handles,
            labels,
            loc="outside lower center",
            ncols=columns,
            frameon=False,
            fontsize="small",
            title=notes or None,
            title_fontsize="small",
        )
