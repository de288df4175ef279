"""No text of a figure of `blast figures` or `blast sim replay` overlaps another or lies outside.

The measured rows are in tests/data/figures, as the commands wrote them.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from blast_sim.base.report import Row
from blast_sim.papers import drawings
from blast_sim.papers.balanced.drawings import for_each_root, gains, shares, with_clusters
from blast_sim.papers.balanced.figures import OF_CLUSTERS, OF_SITES, PAPER, joined, other_orders, planned
from blast_sim.papers.balanced.random_networks import claim_shares, network_rows
from blast_sim.papers.blast import optimality_drawings, size_drawings
from blast_sim.papers.blast.figures import PICTURES
from blast_sim.papers.canvas import SCREEN, Style
from blast_sim.papers.pipeline.drawings import of_rates, of_shares
from blast_sim.papers.pipeline.failure_drawing import of_failures
from blast_sim.papers.pipeline.figures import SITES, summary
from blast_sim.papers.pipeline.rows import scenario_summary
from blast_sim.papers.pipeline.start_drawing import of_start
from blast_sim.papers.rack_fabric.drawings import drawing
from blast_sim.papers.rack_fabric.evaluation import PANELS
from blast_sim.papers.rack_fabric.light_drawing import with_light
from blast_sim.papers.saving import Drawing, drawn
from blast_sim.replay.picture import by_policy
from tests.blast_sim.papers.test_fabric_paper import made_up
from tests.blast_sim.papers.test_pipeline_figures import FAILURES, ROWS

MEASURED = Path(__file__).parents[2] / "data" / "figures"
FROM_FILES: dict[str, Drawing] = {
    "allocation-time": drawings.decision_times,
    "allocation-quality": drawings.shares_of_optimum,
    "completion-time": drawings.completion_times,
    "completion-policies": drawings.all_policies,
    **{picture.name: picture.drawing for picture in PICTURES},
    "blast-break-even": size_drawings.break_even,
    "blast-computation": drawings.decision_times,
    "blast-optimality": optimality_drawings.optimality,
    "blast-greedy": optimality_drawings.greedy_readings,
    "fabric-with-light": with_light,
    "replay": by_policy,
}
PIPELINE: dict[str, tuple[str, Drawing]] = {
    "scale": ("ordered", of_shares("Receivers ordered by racks (paper: IV-A)")),
    "fast": ("fast", of_rates),
    "sites": ("sites", of_shares(f"{SITES} (paper: IV-E)")),
    "small": ("small", of_start),
}


STYLES = (SCREEN, Style(width=7.0, font_size=8.0, title=False), Style(width=3.4, font_size=8.0, title=False))

_SLACK = 1.0
"""Pixels by which the boxes of two texts may touch: letters do not fill their boxes."""


def faults(figure: Figure) -> list[str]:
    """Return a sentence for each text that is outside the figure or on another text.

    Only drawn texts count: axes have labels of ticks that they do not show.
    """
    drawn: dict[Text, None] = {}
    draw = Text.draw

    def noted(self: Text, renderer: object) -> None:
        drawn[self] = None
        draw(self, renderer)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Text, "draw", noted)
        figure.draw_without_rendering()
    boxes = [(text.get_text(), _box(text)) for text in drawn if text.get_visible() and text.get_text().strip()]
    outside = [f"{words!r} is outside" for words, box in boxes if not _inside(box, figure.bbox)]
    return outside + [
        f"{words!r} is on {others!r}" for (words, box), (others, other) in combinations(boxes, 2) if _on(box, other)
    ]


def _box(text: Text) -> Bbox:
    return Bbox(text.get_window_extent().get_points())


def _inside(box: Bbox, picture: Bbox) -> bool:
    return (
        box.x0 >= picture.x0 - _SLACK
        and box.y0 >= picture.y0 - _SLACK
        and box.x1 <= picture.x1 + _SLACK
        and box.y1 <= picture.y1 + _SLACK
    )


def _on(one: Bbox, other: Bbox) -> bool:
    wide = min(one.x1, other.x1) - max(one.x0, other.x0)
    high = min(one.y1, other.y1) - max(one.y0, other.y0)
    return bool(wide > _SLACK and high > _SLACK)


def rows_of(name: str) -> list[Row]:
    """Return the rows of a CSV file as they were before they were written; only the paper's have `from`."""
    with (MEASURED / f"{name}.csv").open(newline="") as file:
        return [
            {key: _value(text) for key, text in row.items() if text or key != "from"} for row in csv.DictReader(file)
        ]


def _value(text: str) -> object:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"True": True, "False": False, "": None}.get(text, text)


def wrong(rows: Sequence[Row], draw: Drawing) -> list[str]:
    """Return the faults of the picture on a screen, in one column of a paper and over two."""
    found = []
    for style in STYLES:
        with drawn(rows, draw, style) as figure:
            found += [f"{style.width}: {fault}" for fault in faults(figure)]
    return found


@pytest.mark.parametrize("name", FROM_FILES)
def test_texts_of_a_measured_figure_do_not_overlap(name: str) -> None:
    assert wrong(rows_of(name), FROM_FILES[name]) == []


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.name)
def test_texts_of_a_rack_fabric_panel_do_not_overlap(panel) -> None:
    assert wrong(made_up(panel), drawing(panel)) == []


@pytest.mark.parametrize("name", PIPELINE)
def test_texts_of_a_pipeline_figure_do_not_overlap(name: str) -> None:
    scenario, draw = PIPELINE[name]
    assert wrong([scenario_summary(row) for row in ROWS if row["scenario"] == scenario], draw) == []


def test_texts_of_the_failure_figure_do_not_overlap() -> None:
    assert wrong([summary(row) for row in FAILURES if row["seconds"]], of_failures) == []


def test_texts_of_the_balanced_figures_do_not_overlap() -> None:
    tables = planned()
    sites = joined(tables[OF_SITES], [], OF_SITES)
    assert wrong([*sites, *other_orders(2)], for_each_root) == []
    assert wrong([*joined(tables[OF_CLUSTERS], [], OF_CLUSTERS), *PAPER], with_clusters) == []
    random = network_rows(0)
    assert wrong(random, gains) == []
    assert wrong(claim_shares(random), shares) == []


def test_check_finds_texts_that_overlap_or_lie_outside() -> None:
    def draw(figure: Figure, rows: Sequence[Row]) -> None:
        axes = figure.subplots()
        axes.text(0.5, 0.5, "one")
        axes.text(0.51, 0.5, "two")
        axes.text(5.0, 0.5, "far", in_layout=False)
        axes.text(0.1, 0.5, "unseen", visible=False)

    assert wrong([], draw)[:2] == ["None: 'far' is outside", "None: 'one' is on 'two'"]
