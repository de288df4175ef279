"""The pictures of the flow-level simulations, with what the Blast paper states marked."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.markers import CARETLEFT
from matplotlib.ticker import FuncFormatter

from blast_sim.base.report import Row
from blast_sim.figures.blast.axes import legend, line, log_axes
from blast_sim.figures.blast.paper_claims import BLAST_SECONDS, LOADS, NON_BLOCKING, OVERSUBSCRIBED, STATED_RATIOS
from blast_sim.figures.drawings import COLOURS, GREY

NAMES = {
    "naive": "naive unicast",
    "hdfs": "HDFS",
    "overlay": "overlay",
    "pipeline": "pipeline",
    "torrent": "TorrentBroadcast",
    "ip-multicast": "IP multicast",
    "rack-fabric": "rack fabric",
    "blast": "Blast",
}
METHOD_COLOURS = dict(zip(("naive", "hdfs", "overlay", "blast", "pipeline", "torrent"), COLOURS, strict=False))
STATED_AT = {0: BLAST_SECONDS["none"], 3: BLAST_SECONDS["light"], 40: BLAST_SECONDS["heavy"]}
"""The paper's loads, as racks on either side, and what its text says of Blast there."""
IN_THE_PAPER = "stated in the paper"


def figure_four(figure: Figure, rows: Sequence[Row]) -> None:
    """Bars by load as in the paper, logarithmic; beside Blast's what the text of the paper says.

    The computation is said in words: on this axis milliseconds on top of a bar have no height.
    """
    axes = figure.subplots()
    series = list(dict.fromkeys((row["method"], row["network"]) for row in rows))
    series.sort(key=lambda one: (list(NAMES).index(one[0]), one[1] != OVERSUBSCRIBED))
    found = {(row["method"], row["network"], row["background"]): row for row in rows}
    loads = [load for load in LOADS if any(key[2] == load for key in found)]
    width = 0.84 / len(series)
    for number, (method, network) in enumerate(series):
        places = [place - 0.42 + width * (number + 0.5) for place in range(len(loads))]
        own = [found[method, network, load] for load in loads]
        label = f"{NAMES[method]}, {network}" if method != "blast" else _blast_and_computation(own)
        colour, alpha = METHOD_COLOURS[method], 0.55 if network == NON_BLOCKING else 1.0
        bars = axes.bar(places, [row["seconds"] for row in own], width * 0.94, color=colour, alpha=alpha, label=label)
        axes.bar_label(bars, [_short(row["seconds"]) for row in own], fontsize=7, padding=1)
        if method == "blast":
            _mark_paper(axes, places, loads, width)
    axes.set_yscale("log")
    axes.set_ylabel("mean completion time, s")
    axes.set_xticks(range(len(loads)), [f"{traffic(load)} unicast traffic" for load in loads])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_ylim(0.1, 900)
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    axes.set_title("Multicast of 300 MB to 120 servers, 36 groups at once (Figure 4 of the paper)", loc="left")
    if "heavy" in loads:
        _mark_ratios(axes, found)
    legend(figure, 4)


def _blast_and_computation(rows: Sequence[Row]) -> str:
    milliseconds = sorted({f"{1000 * row['compute_seconds']:.2g}" for row in rows}, key=float)
    return f"Blast (to compute: + {' to '.join(dict.fromkeys((milliseconds[0], milliseconds[-1])))} ms)"


def _mark_paper(axes: Axes, places: Sequence[float], loads: Sequence[str], width: float) -> None:
    for place, load in zip(places, loads, strict=True):
        label = f"Blast, {IN_THE_PAPER}" if load == loads[0] else ""
        stated = BLAST_SECONDS[load]
        beside = place + 0.47 * width
        axes.plot(beside, stated, marker=CARETLEFT, linestyle="", color="black", markersize=7, label=label)


def _mark_ratios(axes: Axes, found: dict[tuple[str, str, str], Row]) -> None:
    ratios = {
        method: found[method, NON_BLOCKING, "heavy"]["seconds"] / BLAST_SECONDS["heavy"] for method in STATED_RATIOS
    }
    text = "; ".join(
        f"{NAMES[method]} {ratio:.1f} (paper: {STATED_RATIOS[method]:.0f})" for method, ratio in ratios.items()
    )
    said = f"non-blocking, heavy: times slower than Blast's stated 0.295 s\n{text}"
    axes.text(0.99, 0.985, said, transform=axes.transAxes, ha="right", va="top", fontsize=8)


def against_load(figure: Figure, rows: Sequence[Row]) -> None:
    """Completion time against the background, in the unit of the scenario, which is that of the CSV."""
    axes = figure.subplots()
    series = list(dict.fromkeys((row["method"], row["network"]) for row in rows))
    for number, (method, network) in enumerate(series):
        mine = [row for row in rows if (row["method"], row["network"]) == (method, network)]
        own = sorted((int(row["background"]), row["total"]) for row in mine)
        dashes = "--" if network == NON_BLOCKING else "-"
        label = NAMES[method] if method == "blast" else f"{NAMES[method]}, {network}"
        line(axes, own, METHOD_COLOURS[method], number, label, dashes)
    loads = sorted({int(row["background"]) for row in rows})
    for load, stated in STATED_AT.items():
        if load in loads:
            axes.plot(load, stated, "X", color="black", markersize=8, label="" if load else f"Blast, {IN_THE_PAPER}")
    what = "background: racks on either side of its own to which every server has a flow (so 3 are 6 flows a server)"
    log_axes(axes, what, "mean completion time, s", log_x=False)
    axes.set_xscale("symlog", linthresh=1)
    axes.set_xlim(-0.15, 1.25 * max(loads))
    axes.set_xticks(loads)
    axes.minorticks_off()
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_title("Completion time against load: 300 MB to 120 servers, 36 groups", loc="left")
    legend(figure, 3)


def against_splitters(figure: Figure, rows: Sequence[Row]) -> None:
    """Completion time of the contended scenario against splitters, by policy: means of seeds, and the worst percent."""
    panels = figure.subplots(1, 2)
    columns = (("seconds", "mean"), ("p99_seconds", "99th percentile"))
    for axes, (column, name) in zip(panels, columns, strict=True):
        for number, policy in enumerate(dict.fromkeys(row["policy"] for row in rows)):
            own = [row for row in rows if row["policy"] == policy]
            counts = sorted({row["splitters"] for row in own})
            points = [(count, statistics.fmean(r[column] for r in own if r["splitters"] == count)) for count in counts]
            line(axes, points, COLOURS[number], number, f"policy {policy}" if column == "seconds" else "")
        log_axes(axes, "splitters 1:4", f"completion time, s: {name}")
        axes.set_xticks(sorted({row["splitters"] for row in rows}))
        axes.minorticks_off()
        axes.axvline(20, color=GREY, linestyle=":", label="20 splitters: the shipped scenario")
    _apart(figure)
    figure.suptitle(
        "Contended light: 24 multicasts a second, median 300 MB, on 3 to 5 of 120 racks with two ports each\n"
        "Means of the seeds; a multicast waits until ports and a splitter are free, in the order of the policy"
    )
    legend(figure, 4)


def against_racks(figure: Figure, rows: Sequence[Row]) -> None:
    """Completion time against racks, and what of it the controller computes."""
    axes = figure.subplots()
    lit = sorted((row for row in rows if row["method"] == "blast"), key=lambda row: row["racks"])
    for number, method in enumerate(("naive", "overlay")):
        own = sorted((row["racks"], row["seconds"]) for row in rows if row["method"] == method)
        line(axes, own, METHOD_COLOURS[method], number, f"{NAMES[method]}, non-blocking")
    blue = METHOD_COLOURS["blast"]
    line(axes, [(r["racks"], r["total"]) for r in lit], blue, 2, "Blast, all requests at once, with the computation")
    line(axes, [(r["racks"], r["seconds"]) for r in lit], blue, 3, "Blast without the computation", "--")
    compute = [(r["racks"], r["compute_seconds"]) for r in lit]
    line(axes, compute, GREY, 4, "computation: one decision about all groups", ":")
    axes.plot(1000, 0.166, "X", color="black", markersize=8, label=f"computation, 1000 racks, {IN_THE_PAPER}")
    axes.plot(120, 0.295, "P", color="black", markersize=8, label=f"Blast under load, {IN_THE_PAPER}")
    log_axes(axes, "racks of 40 servers (nine of ten in groups of three)", "seconds")
    axes.set_xticks(sorted({row["racks"] for row in rows}))
    axes.minorticks_off()
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_title("Completion time against racks: 300 MB to 120 servers, light load", loc="left")
    legend(figure, 2)


def _apart(figure: Figure) -> None:
    """So that the words of a panel's axis do not touch the panel beside it."""
    engine = figure.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        engine.set(wspace=0.06)


def _short(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def traffic(background: str) -> str:
    """The name of a load, as people read it."""
    return "no" if background == "none" else background
