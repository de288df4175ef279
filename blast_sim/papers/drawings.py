"""The pictures of the allocation results, from the rows that the benchmark scripts write."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, PercentFormatter

from blast_sim.base.report import Row

# Okabe and Ito's colors, which color-blind readers can distinguish.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "os^Dvp*"
GRAY = "#888888"
PAPERS_MARKERS = "XPdh8"
"""Of what a paper prints: black, and unlike any line of ours."""


PARTS = ("the greedy alone", "the controller's policy")
"""Values of a row's method that are not a whole decision."""


def pale(color: str, share: float) -> tuple[float, float, float]:
    """Return a color mixed with white. Unlike a transparent one it hides the grid behind it."""
    red, green, blue = to_rgb(color)
    return (1 - share * (1 - red), 1 - share * (1 - green), 1 - share * (1 - blue))


def decision_times(figure: Figure, rows: Sequence[Row]) -> None:
    """Draw Table I of the paper as a plot: time of a decision against racks.

    Rows with `from` are the paper's points, which compare with the controller's decisions. The greedy and the policy
    alone are parts of these, and are hollow.
    """
    axes = figure.subplots()
    measured = [row for row in rows if "from" not in row]
    for number, method in enumerate(dict.fromkeys(row["method"] for row in measured)):
        own = sorted((row for row in measured if row["method"] == method), key=lambda row: row["racks"])
        part = any(name in method for name in PARTS)
        axes.plot(
            [row["racks"] for row in own],
            [row["milliseconds"] for row in own],
            color=COLORS[number % len(COLORS)],
            marker=MARKERS[number % len(MARKERS)],
            markersize=4,
            linestyle="--" if part else "-",
            markerfacecolor="white" if part else None,
            label=f"{method}*" if part else method,
        )
    for number, row in enumerate(row for row in rows if "from" in row):
        axes.plot(
            row["racks"],
            row["milliseconds"],
            linestyle="",
            color="black",
            marker=PAPERS_MARKERS[number % len(PAPERS_MARKERS)],
            markersize=7,
            label=f"{row['method']}, printed in the paper",
        )
    axes.set(xscale="log", yscale="log", xlabel="racks", ylabel="time of a decision, ms")
    axes.set_title("Time of a decision against racks (Tables I and II of the paper); *: a part of it", loc="left")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.grid(which="major", alpha=0.3)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize="small")


def shares_of_optimum(figure: Figure, rows: Sequence[Row]) -> None:
    """Draw the optimizer and the paper's greedy as shares of the proven optimum, one line per family of instances.

    The right panel shows the range from 95 % on, where the optimizer is.
    """
    figure.set_size_inches(9.0, 1.6 + 0.24 * len(rows))
    panels = figure.subplots(1, 2, sharey=True)
    for axes, low in zip(panels, (0.0, 0.95), strict=True):
        _shares(axes, rows)
        axes.set_xlim(low, 1 + 0.03 * (1 - low))
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, 0))
        axes.grid(axis="x", alpha=0.3)
    panels[0].set_yticks(range(len(rows)), [_label(row) for row in rows])
    for axes in panels:
        axes.tick_params(axis="y", labelsize="small")
    panels[1].set_title("from 95 %", loc="left", fontsize="small")
    panels[0].set_title("all", loc="left", fontsize="small")
    panels[0].invert_yaxis()
    figure.suptitle("Volume of one allocation, share of the optimum, proven to a millionth (*: of the best known)")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)


def _shares(axes: Axes, rows: Sequence[Row]) -> None:
    places = range(len(rows))
    axes.plot([row["greedy"] for row in rows], places, "s", color=COLORS[1], markersize=4, label="greedy, mean")
    axes.hlines(places, [row["worst"] for row in rows], [row["mean"] for row in rows], color=COLORS[0])
    axes.plot([row["worst"] for row in rows], places, "|", color=COLORS[0], label="optimizer, worst seed")
    axes.plot([row["mean"] for row in rows], places, "o", color=COLORS[0], markersize=5, label="optimizer, mean")


def _label(row: Row) -> str:
    return f"{row['case']}, {row['milliseconds']:g} ms{'' if row['proven'] else ' *'}"


def completion_times(figure: Figure, rows: Sequence[Row]) -> None:
    """Draw the completion time of each workload: the paper's policy and the default, with one count of ports or two."""
    axes = figure.subplots()
    series = list(dict.fromkeys((row["policy"], row["directional"]) for row in rows))
    _points(axes, rows, series, [f"{policy}, {_ports(directional)}" for policy, directional in series])
    axes.set_title("Completion time by policy and kind of ports", loc="left")
    figure.legend(loc="outside lower center", ncols=2, frameon=False)


def all_policies(figure: Figure, rows: Sequence[Row]) -> None:
    """Draw the completion time of each workload under every policy, one panel for each kind of ports."""
    kinds = list(dict.fromkeys(row["directional"] for row in rows))
    panels = figure.subplots(1, len(kinds), sharey=True, squeeze=False)[0]
    for axes, directional in zip(panels, kinds, strict=True):
        own = [row for row in rows if row["directional"] == directional]
        series = list(dict.fromkeys((row["policy"], directional) for row in own))
        _points(axes, own, series, [policy for policy, _ in series])
        axes.set_title(f"Every policy, {_ports(directional)}", loc="left")
        axes.label_outer()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)


def _points(axes: Axes, rows: Sequence[Row], series: Sequence[tuple[str, bool]], labels: Sequence[str]) -> None:
    """Draw the mean (dot) and 99th percentile (tick) of each series (policy, kind of ports) for each workload."""
    workloads = list(dict.fromkeys((row["workload"], row["load"]) for row in rows))
    found = {(row["workload"], row["load"], row["policy"], row["directional"]): row for row in rows}
    width = 0.8 / len(series)
    for number, (one, label) in enumerate(zip(series, labels, strict=True)):
        own = [(place, found[key]) for place, load in enumerate(workloads) if (key := (*load, *one)) in found]
        places = [place - 0.4 + width * (number + 0.5) for place, _ in own]
        means, tails = ([row[column] for _, row in own] for column in ("mean_s", "p99_s"))
        color, marker = COLORS[number % len(COLORS)], MARKERS[number % len(MARKERS)]
        axes.vlines(places, means, tails, color=color, alpha=0.5)
        axes.plot(places, means, marker=marker, linestyle="", color=color, label=label)
        axes.plot(places, tails, marker="_", linestyle="", color=color)
    for place, load in enumerate(workloads):
        service = next(row["mean_service_s"] for row in rows if (row["workload"], row["load"]) == load)
        label = "mean of a transfer alone" if place == 0 else ""
        axes.hlines(service, place - 0.45, place + 0.45, color=GRAY, linestyle="--", label=label)
    axes.set_yscale("log")
    axes.set_ylabel("seconds: mean, line to the 99th percentile")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xticks(range(len(workloads)), [f"{kind}\nload {load:g}" for kind, load in workloads])
    axes.grid(axis="y", alpha=0.3)


def _ports(directional: bool) -> str:
    return "a port each way" if directional else "one count of ports"
