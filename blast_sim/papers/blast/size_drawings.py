"""Pictures of what light is worth by the size of a multicast and by the delay of the optical switch."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from blast_sim.base.report import Row
from blast_sim.flow.optics import OPENFLOW_SECONDS
from blast_sim.papers.blast.axes import legend, line, log_axes
from blast_sim.papers.blast.drawings import IN_THE_PAPER, METHOD_COLORS, NAMES, traffic
from blast_sim.papers.drawings import GRAY

STYLES = ("-", "--", ":", "-.")
DELAYS = (
    (1000 * OPENFLOW_SECONDS, "ToRs' rules, meanwhile"),
    (14.172, "Glimmerglass, Table II"),
    (25.0, "paper, section VI"),
    (200.0, "Calient, many at once"),
)


def against_size(figure: Figure, rows: Sequence[Row]) -> None:
    """Draw completion time against size for switches of several speeds, without and with light load."""
    panels = figure.subplots(1, 2, sharey=True)
    for axes, background in zip(panels, ("none", "light"), strict=True):
        here = [row for row in rows if row["background"] == background]
        for number, method in enumerate(("naive", "overlay", "pipeline")):
            own = sorted((row["megabytes"], row["seconds"]) for row in here if row["method"] == method)
            line(axes, own, METHOD_COLORS[method], number, NAMES[method])
        _blast_by_delay(axes, [row for row in here if row["method"] == "blast"])
        if background == "none":
            axes.plot(300, 0.265, "X", color="black", markersize=8, zorder=5, label=f"25 ms, 300 MB, {IN_THE_PAPER}")
        log_axes(axes, "size, MB", "mean completion time, s" if background == "none" else "")
        axes.set_xticks(sorted({row["megabytes"] for row in rows}))
        axes.minorticks_off()
        axes.set_title(f"{traffic(background)} unicast traffic", loc="left")
    figure.suptitle("Completion time against size: 119 receivers in 3 racks, 10:1")
    legend(figure, 4)


def _blast_by_delay(axes: Axes, rows: Sequence[Row]) -> None:
    """Draw a line for each delay of the optical switch; they lie on each other where delays make no difference."""
    delays = sorted({row["switching_ms"] for row in rows})
    for number, delay in enumerate(delays):
        own = sorted((row["megabytes"], row["seconds"]) for row in rows if row["switching_ms"] == delay)
        shade = 0.35 + 0.65 * (number + 1) / len(delays)
        label = f"Blast, switch of {delay:.3g} ms"
        line(axes, own, METHOD_COLORS["blast"], None, label, STYLES[number % len(STYLES)], shade)


def break_even(figure: Figure, rows: Sequence[Row]) -> None:
    """Draw the size from which Blast is faster, against the delay of the optical switch."""
    axes = figure.subplots()
    series = list(dict.fromkeys((row["method"], row["background"]) for row in rows))
    for number, (method, background) in enumerate(series):
        own = sorted(
            (row["switching_ms"], row["megabytes"])
            for row in rows
            if (row["method"], row["background"]) == (method, background) and row["megabytes"]
        )
        dashes = "-" if background == "none" else "--"
        if own:
            label = f"against {NAMES[method]}, {traffic(background)} unicast traffic"
            line(axes, own, METHOD_COLORS[method], number, label, dashes)
    for (delay, name), dashes in zip(DELAYS, STYLES, strict=True):
        axes.axvline(delay, color=GRAY, linestyle=dashes, linewidth=1, label=f"{delay:.3g} ms: {name}")
    log_axes(axes, "delay of the optical switch, ms", "size from which Blast is faster, MB")
    axes.set_xticks(sorted({row["switching_ms"] for row in rows}))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
    axes.minorticks_off()
    axes.set_title("Size from which Blast is faster, by the delay of the optical switch", loc="left")
    legend(figure, 3, "No point: Blast is faster at every size up to 1 GB, or at none.")
