"""Pictures of what light is worth by the size of a multicast and by the delay of the optical switch."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from blast_sim.base.report import Row
from blast_sim.figures.blast.axes import legend, line, log_axes
from blast_sim.figures.blast.drawings import IN_THE_PAPER, METHOD_COLOURS, NAMES, traffic
from blast_sim.figures.drawings import GREY
from blast_sim.flow.optics import OPENFLOW_SECONDS

BY_DELAY = "Blast, by delay of the switch"
DELAYS = (
    (1000 * OPENFLOW_SECONDS, "ToRs' rules, meanwhile"),
    (14.172, "Glimmerglass, Table II"),
    (25.0, "paper, section VI"),
    (200.0, "Calient, many at once"),
)


def against_size(figure: Figure, rows: Sequence[Row]) -> None:
    """Completion time against size for switches of several speeds, without and with light load."""
    panels = figure.subplots(1, 2, sharey=True)
    for axes, background in zip(panels, ("none", "light"), strict=True):
        here = [row for row in rows if row["background"] == background]
        for number, method in enumerate(("naive", "overlay", "pipeline")):
            own = sorted((row["megabytes"], row["total"]) for row in here if row["method"] == method)
            line(axes, own, METHOD_COLOURS[method], number, NAMES[method])
        _blast_by_delay(axes, [row for row in here if row["method"] == "blast"])
        if background == "none":
            axes.plot(300, 0.265, "X", color="black", markersize=8, zorder=5, label=f"25 ms, 300 MB, {IN_THE_PAPER}")
        log_axes(axes, "size, MB", "mean completion time, s" if background == "none" else "")
        axes.set_xticks(sorted({row["megabytes"] for row in rows}))
        axes.minorticks_off()
        # Left of the lines there are words.
        axes.set_xlim(left=0.04 * min(row["megabytes"] for row in rows))
        axes.set_title(f"{traffic(background)} unicast traffic", loc="left")
    figure.suptitle("Completion time against size: 119 receivers in 3 racks, 10:1")
    legend(figure, 4)


def _blast_by_delay(axes: Axes, rows: Sequence[Row]) -> None:
    """A line for each delay of the optical switch, said where it begins; delays that make no difference together."""
    ends: dict[float, list[float]] = {}
    delays = sorted({row["switching_ms"] for row in rows})
    for number, delay in enumerate(delays):
        own = sorted((row["megabytes"], row["total"]) for row in rows if row["switching_ms"] == delay)
        shade = 0.35 + 0.65 * (number + 1) / len(delays)
        line(axes, own, METHOD_COLOURS["blast"], None, "" if delay < delays[-1] else BY_DELAY, "-", shade)
        height = next((one for one in ends if abs(one / own[0][1] - 1) < 0.05), own[0][1])
        ends.setdefault(height, []).append(delay)
    smallest = min(row["megabytes"] for row in rows)
    for height, together in ends.items():
        words = " and ".join(f"{delay:.3g}" for delay in together) + " ms"
        axes.annotate(words, (smallest, height), (-5, 0), textcoords="offset points", fontsize=7, ha="right",
                      va="center", color="#8a4a70")  # fmt: skip


def break_even(figure: Figure, rows: Sequence[Row]) -> None:
    """Below which size light stops paying, against the delay of the optical switch."""
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
            line(axes, own, METHOD_COLOURS[method], number, label, dashes)
    for delay, name in DELAYS:
        axes.axvline(delay, color=GREY, linestyle=":", linewidth=1)
        said = f"{delay:.3g} ms: {name}"
        axes.annotate(said, (delay, 1.0), (3, -3), xycoords=("data", "axes fraction"), textcoords="offset points",
                      rotation=90, ha="left", va="top", fontsize=7, color=GREY)  # fmt: skip
    log_axes(axes, "delay of the optical switch, ms", "size from which Blast is faster, MB")
    axes.set_xticks(sorted({row["switching_ms"] for row in rows}))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
    axes.minorticks_off()
    # Above the highest line, for the words.
    axes.set_ylim(top=30 * max((row["megabytes"] or 0.1) for row in rows))
    axes.set_title(
        "Below which size does light stop paying? (No point: Blast is faster at every size up to 1 GB, or at none)",
        loc="left",
        fontsize=10,
    )
    legend(figure, 3)
