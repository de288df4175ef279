"""Rows of boxes on one side of an optical switch, with lanes between the columns for the fibers of the rows behind.

The first row stands next to the switch, and its fibers run straight. A fiber of a row behind leaves its box, turns
left above it, and goes to the switch in the lane beside its column. Lanes of the row farthest away lie farthest left,
so that no two fibers of a grid cross.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil

_GAP = 14.0
_AISLE = 8.0
"""Free space in front of a box, beside what its fibers need to turn."""
_TURN = 4.0
_SHARE_OF_LANES = 0.3
_LANE, _NARROWEST_LANE = 4.0, 0.4


@dataclass(frozen=True, slots=True)
class Cell:
    """What wants a place: its width, and how many fiber ends it has on the side of the switch."""

    width: float
    ends: int


@dataclass(frozen=True, slots=True)
class Grid:
    """Cells row by row, as many columns as given. Depths are counted from the row next to the switch.

    `lanes_room` is the width that all lanes may take together, before they are drawn closer.
    """

    cells: Sequence[Cell]
    columns: int
    cell_height: float
    lanes_room: float
    _widths: list[float] = field(init=False)

    def __post_init__(self) -> None:
        """Make every column as wide as its widest cell."""
        columns = [self.cells[n :: self.columns] for n in range(min(self.columns, len(self.cells)))]
        object.__setattr__(self, "_widths", [max(cell.width for cell in column) for column in columns])

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return ceil(len(self.cells) / self.columns)

    @property
    def width(self) -> float:
        """The least width, with a gap beside every column."""
        return sum(self._widths) + len(self._widths) * (_GAP + self._lanes_width)

    @property
    def depth(self) -> float:
        """From the near edge of the first row to the far edge of the last."""
        return self.rows * self.cell_height + max(self.rows - 1, 0) * self._aisle if self.cells else 0.0

    def row_depth(self, number: int) -> float:
        """From the near edge of the first row to that of a cell's row."""
        return number // self.columns * (self.cell_height + self._aisle)

    def lefts(self, room: float) -> list[float]:
        """Left edge of every cell, when the grid is spread over this width."""
        slack = (room - self.width) / max(len(self._widths), 1)
        lefts, x = [], 0.0
        for width in self._widths:
            x += self._lanes_width + (_GAP + slack) / 2
            lefts.append(x)
            x += width + (_GAP + slack) / 2
        return [
            lefts[n % self.columns] + (self._widths[n % self.columns] - cell.width) / 2
            for n, cell in enumerate(self.cells)
        ]

    def turn(self, number: int, end: int) -> tuple[float, float] | None:
        """Where a fiber turns: its lane, left of the cell's left edge, and how far before its near edge; or not."""
        row = number // self.columns
        if row == 0:
            return None
        lane = (row - 1) * self._max_ends + self._max_ends - end
        inset = (self._widths[number % self.columns] - self.cells[number].width) / 2
        return _GAP / 4 + inset + lane * self._lane, _TURN + end * self._turn_pitch

    @property
    def _max_ends(self) -> int:
        return max((cell.ends for cell in self.cells), default=0)

    @property
    def _lane(self) -> float:
        lanes = (self.rows - 1) * self._max_ends * len(self._widths)
        return min(max(self.lanes_room / max(lanes, 1), _NARROWEST_LANE), _LANE)

    @property
    def _lanes_width(self) -> float:
        return max(self.rows - 1, 0) * self._max_ends * self._lane

    @property
    def _turn_pitch(self) -> float:
        return min(3.0, 24.0 / max(self._max_ends, 1))

    @property
    def _aisle(self) -> float:
        return _AISLE + self._max_ends * self._turn_pitch


def fewest_rows(cells: Sequence[Cell], room: float, cell_height: float) -> Grid:
    """The grid of the fewest rows that fits into this width; where none does, the narrowest."""
    lanes_room = room * _SHARE_OF_LANES
    grids = (Grid(cells, ceil(len(cells) / rows), cell_height, lanes_room) for rows in range(1, len(cells) + 1))
    narrowest: Grid | None = None
    for grid in grids:
        if grid.width <= room:
            return grid
        if narrowest is None or grid.width < narrowest.width:
            narrowest = grid
    return narrowest or Grid(cells, 1, cell_height, lanes_room)
