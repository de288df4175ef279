"""The picture of IP multicast beside Blast: in which range of its set-up the order is that of the paper."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, PercentFormatter

from blast_sim.base.report import Row
from blast_sim.figures.blast.axes import legend, line, log_axes
from blast_sim.figures.blast.set_up_cells import DEFAULT_MS, LINE_GBPS, Equal, equals
from blast_sim.figures.drawings import COLOURS, GREY

SET_UPS = (
    (DEFAULT_MS, "default: Blast's Table II without the optical switch", 60.0, "left"),
    (1000.0, "IGMPv3: a lost report again by then (RFC 3376, 8.11)", 20.0, "right"),
    (60_000.0, "PIM-SM: a lost join again (RFC 7761, 4.11)", 0.03, "right"),
)
"""Milliseconds, what takes them, and where there is room to say so: at which seconds, and on which side."""


def against_set_up(figure: Figure, rows: Sequence[Row]) -> None:
    """Completion time against set-up at the line's rate; the set-up at which both are equal, against the rate."""
    figure.set_size_inches(10.5, 5.2)
    by_set_up, by_rate = figure.subplots(1, 2, width_ratios=(3, 2))
    found = equals(rows)
    sizes = sorted({row["megabytes"] for row in rows})
    for size, colour in zip(sizes, COLOURS, strict=False):
        _by_set_up(by_set_up, size, [row for row in rows if row["megabytes"] == size], colour)
        own = [(one.rate_gbps / LINE_GBPS, one.set_up_ms) for one in found if one.megabytes == size]
        line(by_rate, own, colour, None, "")
    _mark(by_set_up, rows, found)
    _finish_left(by_set_up)
    _finish_right(by_rate)
    figure.suptitle(
        "IP multicast on a packet network of its own, 10 Gbit/s a rack, without loss, beside Blast: 36 groups of 120"
    )
    legend(figure, len(sizes) + 1)


def _mark(axes: Axes, rows: Sequence[Row], found: Sequence[Equal]) -> None:
    lit = {row["megabytes"]: row["total"] for row in rows if row["method"] == "blast"}
    for one in found:
        if one.rate_gbps == LINE_GBPS:
            label = f"equal at {one.set_up_ms:.1f} ms"
            axes.plot(one.set_up_ms, lit[one.megabytes], "X", color="black", markersize=7, zorder=5, label=label)


def _by_set_up(axes: Axes, size: float, rows: Sequence[Row], colour: str) -> None:
    (lit,) = (row["total"] for row in rows if row["method"] == "blast")
    at_line_rate = [row for row in rows if row["method"] == "ip-multicast" and row["rate_gbps"] == LINE_GBPS]
    packet = sorted((row["set_up_ms"], row["total"]) for row in at_line_rate if row["set_up_ms"])
    line(axes, packet, colour, None, f"IP multicast, {size:g} MB")
    line(axes, [(packet[0][0], lit), (packet[-1][0], lit)], colour, None, f"Blast, {size:g} MB", "--")


def _finish_left(axes: Axes) -> None:
    log_axes(axes, "set-up of IP multicast, ms", "mean completion time, s")
    axes.set_title("At the rate of the line: right of X Blast is faster", loc="left", fontsize=9)
    for set_up, name, seconds, side in SET_UPS:
        axes.axvline(set_up, color=GREY, linestyle=":", linewidth=1)
        axes.annotate(name, (set_up, seconds), (3 if side == "left" else -3, 0), textcoords="offset points", ha=side,
                      va="center", fontsize=7, color="#555555",
                      bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0})  # fmt: skip


def _finish_right(axes: Axes) -> None:
    axes.axhline(DEFAULT_MS, color=GREY, linestyle=":", linewidth=1)
    axes.annotate("default set-up", (0.0, DEFAULT_MS), (3, 3), xycoords=("axes fraction", "data"),
                  textcoords="offset points", fontsize=7, color=GREY)  # fmt: skip
    axes.set(xlabel="share of the line's rate that IP multicast keeps", ylabel="set-up of IP multicast, ms")
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, 0))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_ylim(0.0, 35.0)
    axes.set_title("Below its line IP multicast is faster", loc="left", fontsize=9)
    axes.grid(alpha=0.3)
