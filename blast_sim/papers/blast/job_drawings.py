"""The picture of iterative jobs: how long they take, and what of it is multicast."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from blast_sim.base.report import Row
from blast_sim.papers.blast.axes import legend
from blast_sim.papers.blast.drawings import IN_THE_PAPER, METHOD_COLORS, NAMES
from blast_sim.papers.drawings import pale


def iterative_jobs(figure: Figure, rows: Sequence[Row]) -> None:
    """Draw the completion time of iterative jobs, and the share of it in which they multicast or move data at all."""
    panels = figure.subplots(1, 2)
    jobs = list(dict.fromkeys(row["job"] for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    found = {(row["method"], row["job"]): row for row in rows}
    width = 0.8 / len(methods)

    def bars(axes: Axes, column: str, shown: Callable[[float], str], share: float = 1.0) -> None:
        for number, method in enumerate(methods):
            places = [place - 0.4 + width * (number + 0.5) for place in range(len(jobs))]
            heights = [found[method, job][column] for job in jobs]
            label, color = NAMES[method] if share == 1.0 else "", pale(METHOD_COLORS[method], share)
            drawn = axes.bar(places, heights, width * 0.92, color=color, label=label, zorder=1 + share)
            if share == 1.0:
                axes.bar_label(drawn, [shown(height) for height in heights], fontsize="x-small", padding=1)

    bars(panels[0], "seconds", lambda value: f"{value:.0f}")
    panels[0].set_ylabel("mean completion time of a job, s")
    bars(panels[1], "multicast_share", lambda value: f"{100 * value:.0f}")
    bars(panels[1], "communication_share", lambda value: "", share=0.3)
    panels[1].set_ylabel("share of it: multicast (pale: all communication)")
    panels[1].yaxis.set_major_formatter(PercentFormatter(1.0, 0))
    for place, stated in ((0, 0.30), (1, 0.45)):
        label = "" if place else f"{IN_THE_PAPER}, before Blast"
        panels[1].hlines(stated, place - 0.45, place + 0.45, color="black", linestyle="--", linewidth=1, label=label)
    for axes in panels:
        axes.set_xticks(range(len(jobs)), [job.replace("-", "\n") for job in jobs])
        axes.grid(axis="y", alpha=0.3)
        axes.set_axisbelow(True)
        axes.margins(y=0.12)
    figure.suptitle(f"Iterative jobs: 36 on 120 racks; Blast has six splitters for all of them{_tie(found, jobs)}")
    legend(figure, 4)


def _tie(found: Mapping[tuple[str, str], Row], jobs: Sequence[str]) -> str:
    """Return the reason why Blast and the overlay end so close together; empty without rows of both."""
    if any((method, job) not in found for method in ("overlay", "blast") for job in jobs):
        return ""
    saved = [1 - found["blast", job]["seconds"] / found["overlay", job]["seconds"] for job in jobs]
    left = [found["overlay", job]["multicast_share"] for job in jobs]
    return (
        f"\nWith the overlay, multicast is {min(left):.0%} to {max(left):.0%} of a job:\n"
        f"light can save no more than that, and saves {min(saved):.1%} to {max(saved):.1%}"
    )
