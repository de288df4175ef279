"""The picture in which start-up counts: a small file, links as fast as the machine."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from blast_sim.base.report import Row
from blast_sim.papers.drawings import GRAY
from blast_sim.papers.pipeline.drawings import color, finish

_GROUP = 0.86
"""Of the distance between two numbers of receivers, what their bars take."""
_HATCH = "////"
_THIN = {"elinewidth": 0.8, "capsize": 2}


def of_start(figure: Figure, rows: Sequence[Row]) -> None:
    """Draw Figure 14 of the paper: seconds by number of receivers, a bar for each tool, start-up hatched below."""
    figure.set_size_inches(10.0, 5.4)
    axes = figure.subplots()
    numbers = sorted({row["receivers"] for row in rows})
    tools = list(dict.fromkeys((row["tool"], row["title"]) for row in rows if row["runs"] or row["late"]))
    width = _GROUP / max(1, len(tools))
    for place, (tool, title) in enumerate(tools):
        own = [row for row in rows if row["tool"] == tool and row["runs"]]
        places = [numbers.index(row["receivers"]) - _GROUP / 2 + width * (place + 0.5) for row in own]
        starts, carried = [row["start_seconds"] for row in own], [row["transfer_seconds"] for row in own]
        axes.bar(places, starts, width, color="white", edgecolor=color(tool), hatch=_HATCH)
        halves = [row["seconds_half"] for row in own]
        axes.bar(
            places,
            carried,
            width,
            starts,
            color=color(tool),
            edgecolor=color(tool),
            yerr=halves,
            error_kw=_THIN,
            label=title,
        )
        for row in rows:
            if row["tool"] == tool and row["late"]:
                at = numbers.index(row["receivers"]) - _GROUP / 2 + width * (place + 0.5)
                words = f"{title.split(',')[0]}: not done in {row['limit_seconds']:g} s"
                axes.annotate(
                    words, (at, 0), (0, 4), textcoords="offset points", rotation=90, ha="center", fontsize="x-small"
                )
    axes.bar(
        [0],
        [0],
        color="white",
        edgecolor=GRAY,
        hatch=_HATCH,
        label="of it start-up: until the first byte is anywhere",
    )
    axes.set_xticks(range(len(numbers)), [f"{number:g}" for number in numbers])
    axes.set(xlabel="receivers", ylabel="seconds from the command to the last whole copy", ylim=(0, None))
    axes.grid(axis="y", alpha=0.3)
    size = f"{rows[0]['bytes'] / 1e6:g} MB"
    finish(figure, axes, rows, f"A small file of {size}, links not limited, all hosts on one machine (paper: IV-F)")
