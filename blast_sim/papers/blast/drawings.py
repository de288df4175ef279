"""Figures of the flow-level simulations, with the values of the Blast paper marked."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.markers import CARETLEFT
from matplotlib.ticker import FuncFormatter

from blast_sim.base.report import Row
from blast_sim.papers.blast.axes import legend, line, log_axes
from blast_sim.papers.blast.paper_claims import BLAST_SECONDS, LOADS, NON_BLOCKING, OVERSUBSCRIBED, ratios
from blast_sim.papers.drawings import COLORS, GRAY, pale

NAMES = {
    "naive": "naive unicast",
    "hdfs": "HDFS",
    "overlay": "overlay",
    "pipeline": "pipeline",
    "torrent": "TorrentBroadcast",
    "ip-multicast": "IP multicast",
    "packet-multicast": "multicast of packets",
    "rack-fabric": "rack fabric",
    "blast": "Blast",
}
METHOD_COLORS = dict(zip(("naive", "hdfs", "overlay", "blast", "pipeline", "torrent"), COLORS, strict=False))
STATED_AT = {0: BLAST_SECONDS["none"], 3: BLAST_SECONDS["light"], 40: BLAST_SECONDS["heavy"]}
"""The paper's loads, as racks on either side, and the values in its text for Blast."""
IN_THE_PAPER = "stated in the paper"
NARROW = 5.0
"""Width in inches below which the numbers on bars are vertical."""
UNDER_LOAD = "Blast under load"


def figure_four(figure: Figure, rows: Sequence[Row]) -> None:
    """Draw bars by load as in the paper, logarithmic, with the values in the paper's text.

    Rows with a `reading` are other readings of the paper's text, which only the ratios have. The computation is given
    as text, because milliseconds on top of a bar are invisible on this axis.
    """
    axes = figure.subplots()
    every, rows = rows, [row for row in rows if not row.get("reading")]
    series = list(dict.fromkeys((row["method"], row["network"]) for row in rows))
    series.sort(key=lambda one: (list(NAMES).index(one[0]), one[1] != OVERSUBSCRIBED))
    found = {(row["method"], row["network"], row["background"]): row for row in rows}
    loads = [load for load in LOADS if any(key[2] == load for key in found)]
    width = 0.84 / len(series)
    for number, (method, network) in enumerate(series):
        places = [place - 0.42 + width * (number + 0.5) for place in range(len(loads))]
        own = [found[method, network, load] for load in loads]
        label = f"{NAMES[method]}, {network}" if method != "blast" else _blast_and_computation(own)
        color = pale(METHOD_COLORS[method], 0.55) if network == NON_BLOCKING else METHOD_COLORS[method]
        bars = axes.bar(places, [row["seconds"] for row in own], width * 0.94, color=color, label=label)
        turned = 90 if figure.get_figwidth() < NARROW else 0
        axes.bar_label(bars, [_short(row["seconds"]) for row in own], fontsize="x-small", padding=1, rotation=turned)
        if method == "blast":
            _mark_paper(axes, places, loads, width)
    axes.set_yscale("log")
    axes.set_ylabel("mean completion time, s")
    axes.set_xticks(range(len(loads)), loads)
    axes.set_xlabel("unicast traffic")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    seconds = [row["seconds"] for row in rows]
    axes.set_ylim(0.4 * min(seconds), 3.0 * max(seconds))
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    axes.set_title("Multicast of 300 MB to 120 servers, 36 groups at once (Figure 4 of the paper)", loc="left")
    legend(figure, 4, _ratios(every) if "heavy" in loads else "")


def _blast_and_computation(rows: Sequence[Row]) -> str:
    milliseconds = sorted({f"{1000 * row['compute_seconds']:.2g}" for row in rows}, key=float)
    return f"Blast (of this to compute: {' to '.join(dict.fromkeys((milliseconds[0], milliseconds[-1])))} ms)"


def _mark_paper(axes: Axes, places: Sequence[float], loads: Sequence[str], width: float) -> None:
    for place, load in zip(places, loads, strict=True):
        label = f"Blast, {IN_THE_PAPER}" if load == loads[0] else ""
        stated = BLAST_SECONDS[load]
        beside = place + 0.47 * width
        axes.plot(beside, stated, marker=CARETLEFT, linestyle="", color="black", markersize=7, label=label)


def _ratios(rows: Sequence[Row]) -> str:
    lines = ["Non-blocking, heavy load: times as long as Blast"]
    for one in ratios(rows):
        spread = "" if one.smallest == one.largest else f"; other readings {one.smallest:.0f} to {one.largest:.0f}"
        lines.append(
            f"{NAMES[one.method]}: {one.to_stated:.1f} of the paper's 0.295 s (paper: {one.stated:.0f}{spread}), "
            f"{one.to_ours:.1f} of ours"
        )
    return "\n".join(lines)


def against_load(figure: Figure, rows: Sequence[Row]) -> None:
    """Draw completion time against the background, in the unit of the scenario and of the CSV: racks per direction."""
    axes = figure.subplots()
    series = list(dict.fromkeys((row["method"], row["network"]) for row in rows))
    for number, (method, network) in enumerate(series):
        mine = [row for row in rows if (row["method"], row["network"]) == (method, network)]
        own = sorted((int(row["background"]), row["seconds"]) for row in mine)
        dashes = "--" if network == NON_BLOCKING else "-"
        label = NAMES[method] if method == "blast" else f"{NAMES[method]}, {network}"
        line(axes, own, METHOD_COLORS[method], number, label, dashes)
    loads = sorted({int(row["background"]) for row in rows})
    for load, stated in STATED_AT.items():
        if load in loads:
            axes.plot(load, stated, "X", color="black", markersize=8, label="" if load else f"Blast, {IN_THE_PAPER}")
    label = "background: racks on either side of its own to which every server has a flow (so 3 are 6 flows a server)"
    log_axes(axes, label, "mean completion time, s", log_x=False)
    axes.set_xscale("symlog", linthresh=1)
    axes.set_xlim(-0.15, 1.25 * max(loads))
    axes.set_xticks(loads)
    axes.minorticks_off()
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_title("Completion time against load: 300 MB to 120 servers, 36 groups", loc="left")
    legend(figure, 3)


def against_splitters(figure: Figure, rows: Sequence[Row]) -> None:
    """Draw the completion time of the contended scenario against splitters, by policy: mean and 99th percentile.

    Each point is the mean of the seeds.
    """
    panels = figure.subplots(1, 2)
    columns = (("seconds", "mean"), ("p99_seconds", "99th percentile"))
    for axes, (column, name) in zip(panels, columns, strict=True):
        for number, policy in enumerate(dict.fromkeys(row["policy"] for row in rows)):
            own = [row for row in rows if row["policy"] == policy]
            counts = sorted({row["splitters"] for row in own})
            points = [(count, statistics.fmean(r[column] for r in own if r["splitters"] == count)) for count in counts]
            line(axes, points, COLORS[number], number, f"policy {policy}" if column == "seconds" else "")
        log_axes(axes, "splitters 1:4", f"completion time, s: {name}")
        axes.set_xticks(sorted({row["splitters"] for row in rows}))
        axes.minorticks_off()
        axes.axvline(20, color=GRAY, linestyle=":", label="20 splitters: the shipped scenario")
    _apart(figure)
    figure.suptitle(
        "Contended light: 24 multicasts a second, median 300 MB, on 3 to 5 of 120 racks with two ports each\n"
        "Means of the seeds; a multicast waits until ports and a splitter are free, in the order of the policy"
    )
    legend(figure, 4)


def against_racks(figure: Figure, rows: Sequence[Row]) -> None:
    """Draw completion time against racks, and the controller's share of it."""
    axes = figure.subplots()
    lit = sorted((row for row in rows if row["method"] == "blast"), key=lambda row: row["racks"])
    for number, method in enumerate(("naive", "hdfs", "overlay")):
        own = sorted((row for row in rows if row["method"] == method), key=lambda row: row["racks"])
        if own:
            points = [(row["racks"], row["seconds"]) for row in own]
            line(axes, points, METHOD_COLORS[method], number, f"{NAMES[method]}, non-blocking{_sample(own, lit)}")
    blue = METHOD_COLORS["blast"]
    line(axes, [(r["racks"], r["seconds"]) for r in lit], blue, 3, "Blast, all requests at once, with the computation")
    bare = [(r["racks"], r["seconds_without_computation"]) for r in lit]
    line(axes, bare, blue, 4, "Blast without the computation", "--")
    compute = [(r["racks"], r["compute_seconds"]) for r in lit]
    line(axes, compute, GRAY, 5, "computation: the controller's decision about all groups", ":")
    largest = max(row["racks"] for row in rows)
    for racks, seconds, marker, label in ((1000, 0.166, "X", "computation, 1000 racks"), (120, 0.295, "P", UNDER_LOAD)):
        if racks <= largest:
            axes.plot(racks, seconds, marker, color="black", markersize=8, label=f"{label}, {IN_THE_PAPER}")
    log_axes(axes, f"racks of 40 servers (nine of ten in groups of three)\n{_switches(lit)}", "seconds")
    axes.set_xticks(sorted({row["racks"] for row in rows}))
    axes.minorticks_off()
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_title("Completion time against racks: 300 MB to 120 servers, light load", loc="left")
    legend(figure, 2)


def _sample(rows: Sequence[Row], lit: Sequence[Row]) -> str:
    """Return a note on the number of groups that were simulated; empty if all were."""
    groups = {row["racks"]: row["groups"] for row in lit}
    fewer = [row for row in rows if row["groups"] < groups[row["racks"]]]
    return f" (from {fewer[0]['racks']:,} racks on {fewer[0]['groups']} groups send)" if fewer else ""


def _switches(rows: Sequence[Row]) -> str:
    found = {row["racks"]: f"{row['optical_switches']} x {row['switch_ports']:,}" for row in rows}
    return f"optical switches x ports: {', '.join(found.values())}; a group's racks are on one switch"


def _apart(figure: Figure) -> None:
    """Widen the space between panels, so that the words of an axis do not touch the panel beside it."""
    engine = figure.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        engine.set(wspace=0.06)


def _short(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def traffic(background: str) -> str:
    """Return the name of a load as a label has it: `no` for none."""
    return "no" if background == "none" else background
