"""A figure that fits where it is printed: on a screen, or in the column of a paper.

Drawings are made for a screen, at a width of their own. With a `Style` that has a width the same drawing becomes as
wide as asked: panels that would be too narrow side by side stand below each other, the legend takes as many columns as
fit, and long titles are broken into lines.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend

SCREEN_INCHES = (8.0, 5.0)
MIN_PANEL_WIDTH = 2.4
"""Inches, axis labels included, below which panels go below each other."""
MAX_SHAPE = 0.7
"""Height of a panel as a share of its width."""
MAX_SCALED_HEIGHT = 5.5
"""Inches on a screen beyond which a panel is as high as its rows need, whatever its width."""
MIN_PANEL_HEIGHT = 1.6
"""Inches, without its labels."""
POINTS_PER_INCH = 72
BESIDE_THE_AXIS = 0.75
"""Share of a panel's width that is left beside the labels of its y axis, and of a legend's beside its lines."""
ROOM_TO_MEASURE = 6.0
"""Inches that are enough for any legend, without which panels would have none while legends are measured."""
_CHARACTER = 0.54
"""Mean width of a character as a share of the font size."""


@dataclass(frozen=True, slots=True)
class Style:
    """The output style of figures.

    Parameters
    ----------
    format
        `svg`, `png` or `pdf`.
    width
        Inches; None: the width at which the drawing was made for a screen.
    font_size
        Points, of axis labels. Smaller texts keep their share of it.
    title
        False if the caption of a paper has the title.
    """

    format: str = "svg"
    width: float | None = None
    font_size: float = 9.0
    title: bool = True


SCREEN = Style()


@dataclass(frozen=True, slots=True)
class _Legend:
    """A legend, and what made it: matplotlib cannot change the columns of one that is there."""

    drawn: Legend
    entries: tuple[Any, ...]
    ncols: int
    options: dict[str, Any]


class Canvas(Figure):
    """A figure in a style. Drawings use it as any other figure."""

    def __init__(self, style: Style) -> None:
        self._style = style
        self._natural = SCREEN_INCHES
        self._grid = (1, 1)
        self._stacked = self._finished = False
        self._legends: list[_Legend] = []
        super().__init__(figsize=SCREEN_INCHES)
        self._scale()

    def set_size_inches(self, w: Any, h: Any = None, forward: bool = True) -> None:
        """Take a drawing's size for a screen; the style's width, where there is one, stays."""
        if self._finished:
            # matplotlib sets the size that a figure has whenever its resolution changes, as saving does.
            super().set_size_inches(w, h, forward)
            return
        self._natural = (float(w), float(h)) if h is not None else (float(w[0]), float(w[1]))
        self._scale()

    def subplots(self, nrows: int = 1, ncols: int = 1, **options: Any) -> Any:
        """Make panels as `Figure.subplots` does, below each other where they would be too narrow."""
        width, self._grid = self._style.width, (nrows, ncols)
        if width is None or ncols == 1 or width / ncols >= MIN_PANEL_WIDTH:
            return super().subplots(nrows, ncols, **options)
        self._grid, self._stacked = (nrows, ncols), True
        self._scale()
        squeeze = options.pop("squeeze", True)
        options.pop("width_ratios", None)
        panels = np.asarray(super().subplots(nrows * ncols, 1, squeeze=False, **options)).reshape(nrows, ncols)
        return panels.squeeze() if squeeze else panels

    def suptitle(self, t: str, **options: Any) -> Any:
        """Set the title in as many lines as it needs; without a title, set none."""
        return super().suptitle(self._broken(t, self.get_figwidth()) if self._style.title else "", **options)

    def legend(self, *entries: Any, ncols: int = 1, **options: Any) -> Legend:
        """Add a legend as `Figure.legend` does; `fit` gives it fewer columns where it is too wide."""
        if title := options.get("title"):
            options["title"] = self._broken(title, self.get_figwidth())
        legend = super().legend(*entries, ncols=ncols, **options)
        self._legends.append(_Legend(legend, entries, ncols, options))
        return legend

    def fit(self) -> None:
        """Make titles, labels and legends fit; call it when everything is drawn."""
        self._finished = True
        self._fit_titles()
        self._fit_legends()
        if self._style.width is None:
            return
        for axes in self.axes:
            axes.set_xlabel(self._broken(axes.get_xlabel(), BESIDE_THE_AXIS * self._panel_inches(axes)))
        self.draw_without_rendering()
        for axes in self.axes:
            _rotate_if_crowded(axes)
        self._raise_panels()
        for axes in self.axes:
            axes.set_ylabel(self._broken(axes.get_ylabel(), MIN_PANEL_HEIGHT))

    def _fit_legends(self) -> None:
        """Give legends as many columns as fit, and their room on top of that of the panels."""
        width, height = self.get_size_inches()
        super().set_size_inches(width, height + ROOM_TO_MEASURE)
        self._legends = [self._fitted(one) for one in self._legends]
        if self._style.width is not None:
            height += sum(one.drawn.get_window_extent().height for one in self._legends) / self.dpi
        super().set_size_inches(width, height)

    def _fitted(self, one: _Legend) -> _Legend:
        """Return the same legend with as many columns as fit, or one."""
        while True:
            self.draw_without_rendering()
            if one.drawn.get_window_extent().width <= self.bbox.width:
                return one
            if one.ncols == 1:
                for text in one.drawn.get_texts():
                    text.set_text(self._broken(text.get_text(), BESIDE_THE_AXIS * self.get_figwidth()))
                return one
            one.drawn.remove()
            fewer = one.ncols - 1
            one = _Legend(super().legend(*one.entries, ncols=fewer, **one.options), one.entries, fewer, one.options)

    def _raise_panels(self) -> None:
        """Increase the figure's height until the lowest panel is high enough, whatever legends and labels take."""
        self.draw_without_rendering()
        min_height = min(axes.get_window_extent().height for axes in self.axes) / self.dpi
        rows = len({round(axes.get_position().y0, 3) for axes in self.axes})
        if min_height < MIN_PANEL_HEIGHT:
            super().set_size_inches(self.get_figwidth(), self.get_figheight() + rows * (MIN_PANEL_HEIGHT - min_height))

    def _scale(self) -> None:
        """Set the size for the style's width."""
        width, height = self._natural
        if self._style.width is not None:
            rows, columns = self._grid
            high, wide = height / rows, width / columns
            width = self._style.width
            if self._stacked:
                # A panel that was high beside others would be a tower alone.
                panel = high if high > MAX_SCALED_HEIGHT else width * min(high / wide, MAX_SHAPE)
                height = panel * rows * columns
            elif high <= MAX_SCALED_HEIGHT:
                height *= width / self._natural[0]
        super().set_size_inches(width, height)

    def _fit_titles(self) -> None:
        alone = len(self.axes) == 1
        for axes in self.axes:
            inches = BESIDE_THE_AXIS * self._panel_inches(axes)
            for place in ("left", "center", "right"):
                if text := axes.get_title(loc=place):
                    shown = self._broken(text, inches) if self._style.title or not alone else ""
                    axes.set_title(shown, loc=place)

    def _panel_inches(self, axes: Axes) -> float:
        grid = axes.get_gridspec()
        return self.get_figwidth() / (grid.ncols if grid is not None else 1)

    def _broken(self, text: str, inches: float) -> str:
        characters = max(12, int(inches * POINTS_PER_INCH / (self._style.font_size * _CHARACTER)))
        return "\n".join(part for line in text.split("\n") for part in textwrap.wrap(line, characters) or [""])


def _rotate_if_crowded(axes: Axes) -> None:
    """Rotate the labels of the x axis if they touch each other."""
    boxes = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()]
    boxes.sort(key=lambda box: box.x0)
    if any(one.x1 + 2 > other.x0 for one, other in pairwise(boxes)):
        axes.tick_params(axis="x", labelrotation=90)
