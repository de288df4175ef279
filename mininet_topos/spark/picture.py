"""Time per iteration, as a picture: a panel for each example, a color for each way."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from blast_sim.base.report import Row
from blast_sim.papers.canvas import Style
from blast_sim.papers.drawings import COLORS, MARKERS
from blast_sim.papers.saving import Gallery, save
from mininet_topos.spark.trials import ALONE, PLUGIN, SparkTrial

_LABELS = {ALONE: "Spark alone", PLUGIN: "with the plugin"}


def draw(path: Path, trials: Sequence[SparkTrial]) -> list[Path]:
    """Write the figure (format by suffix) and its data as CSV; return the files."""
    rows = [
        {"example": one.example, "way": one.way, "pair": one.pair, "iteration": step.number, "seconds": step.seconds}
        for one in trials
        for step in one.iterations
    ]
    return save(Gallery(path.parent, Style(path.suffix[1:])), path.stem, rows, _draw)


def _draw(figure: Figure, rows: Sequence[Row]) -> None:
    examples = list(dict.fromkeys(row["example"] for row in rows))
    figure.set_size_inches(2.0 + 2.6 * len(examples), 4.0)
    panels = figure.subplots(1, len(examples), squeeze=False)[0]
    for axes, example in zip(panels, examples, strict=True):
        for number, (way, label) in enumerate(_LABELS.items()):
            for pair in dict.fromkeys(row["pair"] for row in rows):
                own = [row for row in rows if (row["example"], row["way"], row["pair"]) == (example, way, pair)]
                axes.plot(
                    [row["iteration"] for row in own],
                    [row["seconds"] for row in own],
                    color=COLORS[number],
                    marker=MARKERS[number],
                    label=label if own and pair == own[0]["pair"] else "",
                )
        axes.set_title(example, loc="left")
        axes.set_xlabel("iteration")
        axes.set_ylim(0, 1.05 * max(row["seconds"] for row in rows if row["example"] == example))
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.grid(axis="y", alpha=0.3)
    panels[0].set_ylabel("seconds")
    handles = {label: line for axes in panels for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=len(_LABELS), frameon=False)
