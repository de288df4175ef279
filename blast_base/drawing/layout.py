"""Layout of a fabric's picture: splitters at the top, optical switches in the middle, racks at the bottom.

Every fiber end has a point on the edge of its optical switch, so that a cross-connect is a curve between two points.
Many racks or splitters are laid out in rows, and a number replaces the hosts of a rack. Lengths are pixels at scale 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import ceil, sqrt

from blast_api.ttypes import FabricStatus, OpticalPortStatus, RackStatus, SplitterStatus
from blast_base.drawing.geometry import Box, Fiber, Point
from blast_base.drawing.grid import CellGrid, GridCell, fewest_rows

__all__ = ["Box", "FabricLayout", "Fiber", "Point", "lay_out"]

MARGIN = 24.0
TITLE_HEIGHT = 46.0
SPLITTER_HEIGHT = 54.0
SPLITTER_FIBER = 34.0
RACK_FIBER = 46.0
TOR_HEIGHT = 30.0
HOST_LINE = 15.0
HOSTS_SHOWN = 4
LABEL_STRIP = 30.0
_GAP = 14.0
_PAIR = 5.0
"""Half the distance between the two fibers of an optical port."""
_PORT_WIDTH = 26.0
_SMALLEST_RACK, _LARGEST_RACK = 48.0, 96.0
_SMALLEST_PICTURE = 720.0
_OUTPUT_PITCH, _NARROWEST_OUTPUT_PITCH = 13.0, 4.0
_NARROWEST_SPLITTER = 54.0
_OUTPUTS_ROOM = 1_600.0
"""Total width of the outputs of all splitters above which they are drawn closer together."""
_RACKS_IN_A_ROW = 16
"""More racks in a row would be too narrow for their names."""
_RACKS_LANES_ROOM = 768.0
"""Width of 16 racks: fibers of several rows run in lanes between them."""


@dataclass(slots=True)
class FabricLayout:
    """Positions of all elements. Keys of fibers: (optical switch, number of its input or output)."""

    width: float
    height: float = 0.0
    hosts_shown: int = HOSTS_SHOWN
    """Maximum number of hosts that are listed below a rack; 0: only their number is shown."""
    switches: dict[str, Box] = field(default_factory=dict)
    racks: list[tuple[RackStatus, Box]] = field(default_factory=list)
    splitters: list[tuple[SplitterStatus, Box]] = field(default_factory=list)
    ports: list[tuple[OpticalPortStatus, Point]] = field(default_factory=list)
    into_switch: dict[tuple[str, int], Fiber] = field(default_factory=dict)
    out_of_switch: dict[tuple[str, int], Fiber] = field(default_factory=dict)


def lay_out(fabric: FabricStatus) -> FabricLayout:
    """Compute the positions of all elements of a fabric."""
    crowded = len(fabric.racks) > _RACKS_IN_A_ROW
    racks = _rack_grid(fabric.racks)
    pitch = _output_pitch(fabric.splitters)
    names = [switch.name for switch in fabric.opticalSwitches]
    inner = max(_SMALLEST_PICTURE, racks.width)
    room = (inner + LABEL_STRIP - _GAP * (len(names) - 1)) / max(len(names), 1) - LABEL_STRIP
    splitters = {
        name: fewest_rows(
            [
                GridCell(_splitter_width(s.fanOut, pitch), s.fanOut + 1)
                for s in fabric.splitters
                if s.opticalSwitch == name
            ],
            room,
            SPLITTER_HEIGHT,
        )
        for name in names
    }
    room = max([room, *(grid.width for grid in splitters.values())])
    inner = max(inner, (room + LABEL_STRIP) * len(names) + _GAP * (len(names) - 1) - LABEL_STRIP)
    layout = FabricLayout(width=inner + LABEL_STRIP + 2 * MARGIN, hosts_shown=0 if crowded else HOSTS_SHOWN)
    _place_switches(layout, fabric, max((grid.depth for grid in splitters.values()), default=0.0))
    _place_racks(layout, fabric.racks, racks)
    for name, grid in splitters.items():
        _place_splitters(layout, [s for s in fabric.splitters if s.opticalSwitch == name], grid, pitch)
    return layout


def _rack_grid(racks: Sequence[RackStatus]) -> CellGrid:
    rows = 1 if len(racks) <= _RACKS_IN_A_ROW else ceil(len(racks) / max(_RACKS_IN_A_ROW, sqrt(len(racks))))
    columns = max(ceil(len(racks) / rows), 1)
    common = min(max(_SMALLEST_PICTURE / columns - _GAP, _SMALLEST_RACK), _LARGEST_RACK)
    cells = [GridCell(max(common, _PORT_WIDTH * len(r.opticalPorts)), 2 * len(r.opticalPorts)) for r in racks]
    return CellGrid(cells, columns, TOR_HEIGHT, _RACKS_LANES_ROOM)


def _output_pitch(splitters: Sequence[SplitterStatus]) -> float:
    # Large fan-outs and many splitters must fit the width of the row of racks.
    widest = max((s.fanOut for s in splitters), default=1)
    pitch = _OUTPUT_PITCH if widest <= 8 else max(6.0, _OUTPUT_PITCH * 8 / widest)
    share = _OUTPUTS_ROOM / max(sum(s.fanOut + 2 for s in splitters), 1)
    return max(min(pitch, share), _NARROWEST_OUTPUT_PITCH)


def _splitter_width(fan_out: int, pitch: float) -> float:
    return max((fan_out + 2) * pitch, _NARROWEST_SPLITTER)


def _place_switches(layout: FabricLayout, fabric: FabricStatus, splitters_depth: float) -> None:
    names = [switch.name for switch in fabric.opticalSwitches]
    # Long curves need height to stay apart.
    height = min(150.0 + 3.0 * len(fabric.racks), max(240.0, layout.width / 6))
    y = MARGIN + TITLE_HEIGHT + max(splitters_depth, SPLITTER_HEIGHT) + SPLITTER_FIBER
    gaps = _GAP * (len(names) - 1)
    width = (layout.width - 2 * MARGIN - gaps) / max(len(names), 1)
    for number, name in enumerate(names):
        layout.switches[name] = Box(MARGIN + number * (width + _GAP), y, width, height)
    # So do fibers that cross each other on their way to several switches.
    sideways = min(0.05 * layout.width, 80.0) if len(names) > 1 else 0.0
    layout.height = y + height + RACK_FIBER + sideways


def _place_racks(layout: FabricLayout, racks: Sequence[RackStatus], grid: CellGrid) -> None:
    top, left = layout.height, MARGIN + LABEL_STRIP
    ends: list[tuple[OpticalPortStatus, Fiber, Fiber]] = []
    for number, (rack, x) in enumerate(zip(racks, grid.lefts(layout.width - MARGIN - left), strict=True)):
        box = Box(left + x, top + grid.row_depth(number), grid.cells[number].width, TOR_HEIGHT)
        layout.racks.append((rack, box))
        first = box.middle.x - _PORT_WIDTH * (len(rack.opticalPorts) - 1) / 2
        for n, port in enumerate(rack.opticalPorts):
            point = Point(first + n * _PORT_WIDTH, box.y)
            layout.ports.append((port, point))
            into = _leave(Point(point.x - _PAIR, point.y), box, grid.bend(number, 2 * n), -1)
            out = _leave(Point(point.x + _PAIR, point.y), box, grid.bend(number, 2 * n + 1), -1)
            ends.append((port, into, out))
    _connect_ports(layout, ends, top)
    lines = max((min(len(rack.hosts), layout.hosts_shown + 1) for rack in racks), default=0)
    layout.height = top + grid.depth + (lines * HOST_LINE if layout.hosts_shown else 0.0) + 14.0


def _leave(near: Point, box: Box, bend: tuple[float, float] | None, direction: int) -> Fiber:
    """Return a fiber from its box up (-1) or down (1) to its straight section; the edge of the switch is not known."""
    if bend is None:
        return Fiber(near, near)
    sideways, before = bend
    corner = near.y + direction * before
    lane = Point(box.x - sideways, corner)
    return Fiber(near, lane, (Point(near.x, corner), lane))


def _connect_ports(layout: FabricLayout, ends: Sequence[tuple[OpticalPortStatus, Fiber, Fiber]], top: float) -> None:
    for name, box in layout.switches.items():
        own = sorted((end for end in ends if end[0].opticalSwitch == name), key=lambda end: end[1].far.x)
        for number, (port, into, out) in enumerate(own):
            # With one switch the fiber runs straight up; several switches share the width.
            x = None if len(layout.switches) == 1 else _spread(box, number, len(own))
            layout.into_switch[name, port.switchInput] = _sideways(into, x and x - _PAIR, box.bottom, top)
            layout.out_of_switch[name, port.switchOutput] = _sideways(out, x and x + _PAIR, box.bottom, top)


def _straight(fiber: Fiber, y: float) -> Fiber:
    return replace(fiber, far=Point(fiber.far.x, y))


def _sideways(fiber: Fiber, x: float | None, y: float, top: float) -> Fiber:
    """Lead a fiber to `x` at the switch after it leaves its lane between the racks, which begin at `top`."""
    if x is None or x == fiber.far.x:
        return _straight(fiber, y)
    bends = (*fiber.bends, Point(fiber.far.x, top)) if fiber.bends else ()
    return replace(fiber, far=Point(x, y), bends=bends)


def _place_splitters(layout: FabricLayout, splitters: Sequence[SplitterStatus], grid: CellGrid, pitch: float) -> None:
    if not splitters:
        return
    switch = layout.switches[splitters[0].opticalSwitch]
    left, bottom = switch.x + LABEL_STRIP, switch.y - SPLITTER_FIBER
    for number, (splitter, x) in enumerate(zip(splitters, grid.lefts(switch.width - LABEL_STRIP), strict=True)):
        y = bottom - grid.row_depth(number) - SPLITTER_HEIGHT
        box = Box(left + x, y, grid.cells[number].width, SPLITTER_HEIGHT)
        layout.splitters.append((splitter, box))
        # A gap separates the input from the outputs.
        first = box.middle.x - pitch * (splitter.fanOut + 0.5) / 2
        offsets = [0.0, *(pitch * (output + 1.5) for output in range(splitter.fanOut))]
        trunk, *outputs = (
            _straight(_leave(Point(first + offset, box.bottom), box, grid.bend(number, end), 1), switch.y)
            for end, offset in enumerate(offsets)
        )
        layout.out_of_switch[splitter.opticalSwitch, splitter.switchOutput] = trunk
        for output, fiber in zip(splitter.switchInputs, outputs, strict=False):
            layout.into_switch[splitter.opticalSwitch, output] = fiber


def _spread(box: Box, number: int, count: int) -> float:
    return box.x + LABEL_STRIP + (box.width - LABEL_STRIP) * (number + 0.5) / max(count, 1)
