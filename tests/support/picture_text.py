"""What is wrong with the text of a picture: words on each other, and words outside."""

from __future__ import annotations

from itertools import combinations

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

_SLACK = 1.0
"""Pixels by which the boxes of two texts may touch: letters do not fill their boxes."""


def faults(figure: Figure) -> list[str]:
    """A sentence for each. Only what is really drawn counts: axes hold labels of ticks that they do not show."""
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
