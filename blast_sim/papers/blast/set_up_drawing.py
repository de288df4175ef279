"""The picture of IP multicast beside Blast: in which range of its set-up the order is that of the paper."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, PercentFormatter

from blast_sim.base.report import Row
from blast_sim.papers.blast.axes import legend, line, log_axes
from blast_sim.papers.blast.set_up_cells import DEFAULT_MS, LINE_GBPS, Equal, equals
from blast_sim.papers.drawings import COLORS, GRAY

SET_UPS = (
    (DEFAULT_MS, "default set-up: Blast's Table II without the optical switch", ":"),
    (1000.0, "1 s: IGMPv3 sends a lost report again (RFC 3376, 8.11)", "-."),
    (60_000.0, "60 s: PIM-SM sends a lost join again (RFC 7761, 4.11)", "--"),
)
"""Milliseconds, what takes them, and the style of their line."""


def against_set_up(figure: Figure, rows: Sequence[Row]) -> None:
    """Draw completion time against set-up at the line's rate, and the set-up at which both are equal by rate."""
    figure.set_size_inches(10.5, 5.2)
    by_set_up, by_rate = figure.subplots(1, 2, width_ratios=(3, 2))
    found = equals(rows)
    sizes = sorted({row["megabytes"] for row in rows})
    for size, color in zip(sizes, COLORS, strict=False):
        _by_set_up(by_set_up, size, [row for row in rows if row["megabytes"] == size], color)
        own = [(one.rate_gbps / LINE_GBPS, one.set_up_ms) for one in found if one.megabytes == size]
        line(by_rate, own, color, None, "")
    _mark(by_set_up, rows, found)
    _finish_left(by_set_up)
    _finish_right(by_rate, found)
    figure.suptitle(
        "IP multicast on a packet network of its own, 10 Gbit/s a rack, without loss, beside Blast: 36 groups of 120"
    )
    legend(figure, len(sizes) + 1)


def _mark(axes: Axes, rows: Sequence[Row], found: Sequence[Equal]) -> None:
    lit = {row["megabytes"]: row["seconds"] for row in rows if row["method"] == "blast"}
    for one in found:
        if one.rate_gbps == LINE_GBPS:
            label = f"equal at {one.set_up_ms:.1f} ms"
            axes.plot(one.set_up_ms, lit[one.megabytes], "X", color="black", markersize=7, zorder=5, label=label)


def _by_set_up(axes: Axes, size: float, rows: Sequence[Row], color: str) -> None:
    (lit,) = (row["seconds"] for row in rows if row["method"] == "blast")
    at_line_rate = [row for row in rows if row["method"] == "ip-multicast" and row["rate_gbps"] == LINE_GBPS]
    packet = sorted((row["set_up_ms"], row["seconds"]) for row in at_line_rate if row["set_up_ms"])
    line(axes, packet, color, None, f"IP multicast, {size:g} MB")
    line(axes, [(packet[0][0], lit), (packet[-1][0], lit)], color, None, f"Blast, {size:g} MB", "--")


def _finish_left(axes: Axes) -> None:
    log_axes(axes, "set-up of IP multicast, ms", "mean completion time, s")
    axes.set_title("At the rate of the line: right of X Blast is faster", loc="left", fontsize="medium")
    for set_up, name, dashes in SET_UPS:
        axes.axvline(set_up, color=GRAY, linestyle=dashes, linewidth=1, label=name)


def _finish_right(axes: Axes, found: Sequence[Equal]) -> None:
    axes.axhline(DEFAULT_MS, color=GRAY, linestyle=":", linewidth=1)
    axes.set(xlabel="share of the line's rate that IP multicast keeps", ylabel="set-up of IP multicast, ms")
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, 0))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_ylim(0.0, 1.1 * max(DEFAULT_MS, *(one.set_up_ms for one in found)))
    axes.set_title("Below its line IP multicast is faster", loc="left", fontsize="medium")
    axes.grid(alpha=0.3)
