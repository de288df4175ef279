"""A grid of boxes on one side of an optical switch, with lanes between the columns for the fibers of far rows.

The first row is next to the switch, and its fibers run straight. A fiber of another row turns left above its box and
runs to the switch in the lane beside its column. The lanes of the farthest row are leftmost, so that no two fibers of a
grid cross.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil

_GAP = 14.0
_AISLE = 8.0
"""Free space in front of a box, in addition to the turns of its fibers."""
_BEND = 4.0
_SHARE_OF_LANES = 0.3
"""The rest of the width is for the cells."""
_LANE, _NARROWEST_LANE = 4.0, 0.4


@dataclass(frozen=True, slots=True)
class GridCell:
    """A box: its width, and the number of its fiber ends on the side of the switch."""

    width: float
    ends: int


@dataclass(frozen=True, slots=True)
class CellGrid:
    """Cells in rows of `columns`. Depths are relative to the row next to the switch.

    `lanes_room` is the total width of all lanes above which they are drawn closer together.
    """

    cells: Sequence[GridCell]
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
        """Number of rows."""
        return ceil(len(self.cells) / self.columns)

    @property
    def width(self) -> float:
        """Minimum width, with a gap beside every column."""
        return sum(self._widths) + len(self._widths) * (_GAP + self._lanes_width)

    @property
    def depth(self) -> float:
        """Distance from the near edge of the first row to the far edge of the last."""
        return self.rows * self.cell_height + max(self.rows - 1, 0) * self._aisle if self.cells else 0.0

    def row_depth(self, number: int) -> float:
        """Return the distance from the near edge of the first row to that of a cell's row."""
        return number // self.columns * (self.cell_height + self._aisle)

    def lefts(self, room: float) -> list[float]:
        """Return the left edge of every cell if the grid is spread over this width."""
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

    def bend(self, number: int, end: int) -> tuple[float, float] | None:
        """Return where a fiber bends, relative to its cell: distance left of it, and in front of it.

        None: the fiber of a cell in the first row is straight.
        """
        row = number // self.columns
        if row == 0:
            return None
        lane = (row - 1) * self._max_ends + self._max_ends - end
        inset = (self._widths[number % self.columns] - self.cells[number].width) / 2
        return _GAP / 4 + inset + lane * self._lane, _BEND + end * self._bend_pitch

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
    def _bend_pitch(self) -> float:
        return min(3.0, 24.0 / max(self._max_ends, 1))

    @property
    def _aisle(self) -> float:
        return _AISLE + self._max_ends * self._bend_pitch


def fewest_rows(cells: Sequence[GridCell], room: float, cell_height: float) -> CellGrid:
    """Return the grid with the fewest rows that fits this width, or the narrowest if none does."""
    lanes_room = room * _SHARE_OF_LANES
    grids = (CellGrid(cells, ceil(len(cells) / rows), cell_height, lanes_room) for rows in range(1, len(cells) + 1))
    narrowest: CellGrid | None = None
    for grid in grids:
        if grid.width <= room:
            return grid
        if narrowest is None or grid.width < narrowest.width:
            narrowest = grid
    return narrowest or CellGrid(cells, 1, cell_height, lanes_room)
