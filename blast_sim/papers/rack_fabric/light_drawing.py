"""The figure that compares the rack fabric with optical multicast: completion, and the effect on unicast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from blast_sim.base.report import Row
from blast_sim.papers.drawings import COLORS
from blast_sim.papers.rack_fabric.models import LINE_GBPS
from blast_sim.papers.rack_fabric.with_light import BOTH, FABRIC, LIGHT, LIGHT_GBPS, SERVERS_PER_RACK, UNICAST_GBPS

PALE = 0.35


@dataclass(frozen=True, slots=True)
class LineStyle:
    """The style of a method. Hollow markers leave markers of other methods at the same place visible."""

    color: str
    marker: str
    size: float
    filled: bool
    words: str


LOOKS = {
    FABRIC: LineStyle(COLORS[1], "D", 4.5, True, f"one fabric for all racks, {LINE_GBPS:g} Gb/s: simulated"),
    LIGHT: LineStyle(COLORS[0], "s", 9.0, False, "a fiber for every server, {gbps:g} Gb/s: computed"),
    BOTH: LineStyle(
        COLORS[2], "o", 4.5, True, "a fiber for every rack, {gbps:g} Gb/s: computed; from there its fabric: simulated"
    ),
}


def with_light(figure: Figure, rows: Sequence[Row]) -> None:
    """Draw completion time, fibers, fullest buffer and unicast delay against racks, a line for each way and rate."""
    figure.set_size_inches(9.5, 8.0)
    (completion, fibers), (buffer, delay) = figure.subplots(2, 2, sharex=True)
    _lines(completion, rows, "completion_s")
    _lines(completion, rows, "completion_alone_s", PALE)
    _logarithmic(completion, "300 MB at the last server after, s")
    completion.margins(y=0.1)
    completion.set_title("Completion (pale: without the unicast)", loc="left")

    _lines(fibers, [row for row in rows if row["fibers"]], "fibers")
    _logarithmic(fibers, "fibers in which light ends")
    fibers.set_title("Fibers (the fabric alone needs none)", loc="left")

    _lines(buffer, rows, "buffer_kb")
    _lines(buffer, rows, "buffer_alone_kb", PALE)
    buffer.set(ylabel="fullest ingress buffer, KB", ylim=(-3, None))
    buffer.set_title("Buffers (pale: without the unicast)", loc="left")

    _lines(delay, rows, "unicast_delay_us")
    _lines(delay, rows, "unicast_delay_worst_us", PALE)
    alone = sorted((row["racks"], row["unicast_delay_alone_us"]) for row in rows if row["way"] == LIGHT)
    delay.plot(*zip(*alone, strict=True), ":", color="black", linewidth=2, label="unicast without the multicast")
    delay.set(ylabel="mean delay of unicast, µs", ylim=(0, None))
    delay.set_title("Unicast beside it (pale: its slowest flow)", loc="left")

    for axes in (buffer, delay):
        axes.set_xlabel(f"racks of {SERVERS_PER_RACK} servers")
    for axes in figure.axes:
        _racks(axes, rows)
    figure.suptitle(
        f"One source sends 300 MB to all servers of some racks: packets are simulated, light is computed.\n"
        f"Beside it one server of every leaf sends {UNICAST_GBPS:g} Gb/s to a server of the next leaf of its rack: "
        f"{_goodput(rows)}.",
        fontsize="medium",
    )
    _legend(figure)


def _lines(axes: Axes, rows: Sequence[Row], column: str, alpha: float = 1.0) -> None:
    for way, gbps in dict.fromkeys((row["way"], row["light_gbps"]) for row in rows):
        own = sorted((row["racks"], row[column]) for row in rows if (row["way"], row["light_gbps"]) == (way, gbps))
        look = LOOKS[way]
        axes.plot(
            [racks for racks, _ in own],
            [value for _, value in own],
            "--" if gbps == min(LIGHT_GBPS) else "-",
            color=look.color,
            marker=look.marker,
            markersize=look.size,
            markerfacecolor=look.color if look.filled else "none",
            alpha=alpha,
            zorder=2 + alpha,
            label=look.words.format(gbps=gbps) if alpha == 1.0 else "",
        )


def _logarithmic(axes: Axes, label: str) -> None:
    axes.set(yscale="log", ylabel=label)
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _racks(axes: Axes, rows: Sequence[Row]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(sorted({row["racks"] for row in rows}))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(which="major", alpha=0.3)


def _goodput(rows: Sequence[Row]) -> str:
    """Return the goodput as text: a line at or near 100 percent would show nothing."""
    minimum = min(row["unicast_share"] for row in rows)
    return "all of that arrives" if minimum > 0.995 else f"at least {minimum:.0%} of that arrives"


def _legend(figure: Figure) -> None:
    found = {
        label: handle for axes in figure.axes for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        list(found.values()),
        list(found),
        loc="outside lower center",
        ncols=2,
        frameon=False,
        fontsize="small",
        handlelength=4,
    )
