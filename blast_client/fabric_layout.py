"""Where the pieces of a fabric stand in its picture: splitters on top, optical switches between, racks below.

Every fibre end gets a point on the edge of its optical switch, so that a cross-connect is a curve between two of
them. Units are those of the picture (pixels at scale 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from blast_api.ttypes import FabricStatus, OpticalPortStatus, RackStatus, SplitterStatus

MARGIN = 24.0
TITLE_HEIGHT = 46.0
SPLITTER_HEIGHT = 54.0
SPLITTER_FIBRE = 34.0
RACK_FIBRE = 46.0
TOR_HEIGHT = 30.0
HOST_LINE = 15.0
HOSTS_SHOWN = 4
LABEL_STRIP = 30.0
_GAP = 14.0
_PAIR = 5.0
"""Half the distance between the two fibres of an optical port."""
_PORT_WIDTH = 26.0
_SMALLEST_RACK, _LARGEST_RACK = 48.0, 96.0
_SMALLEST_PICTURE = 720.0
_LEG_PITCH = 13.0


@dataclass(frozen=True, slots=True)
class Point:
    """A place in the picture; y grows downwards."""

    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float

    @property
    def bottom(self) -> float:
        """The lower edge's y."""
        return self.y + self.height

    @property
    def middle(self) -> Point:
        """The centre."""
        return Point(self.x + self.width / 2, self.y + self.height / 2)


@dataclass(frozen=True, slots=True)
class Fibre:
    """From an element's edge (`near`) to an edge of an optical switch (`far`)."""

    near: Point
    far: Point


@dataclass(slots=True)
class Layout:
    """Where everything stands. Fibres are found by (optical switch, number) of the switch's input or output."""

    width: float
    height: float = 0.0
    switches: dict[str, Box] = field(default_factory=dict)
    racks: list[tuple[RackStatus, Box]] = field(default_factory=list)
    splitters: list[tuple[SplitterStatus, Box]] = field(default_factory=list)
    ports: list[tuple[OpticalPortStatus, Point]] = field(default_factory=list)
    into_switch: dict[tuple[str, int], Fibre] = field(default_factory=dict)
    out_of_switch: dict[tuple[str, int], Fibre] = field(default_factory=dict)


def lay_out(fabric: FabricStatus) -> Layout:
    """Find a place for everything in the fabric."""
    rack_widths = _rack_widths(fabric.racks)
    splitter_widths = [_splitter_width(s.ways, _leg_pitch(fabric.splitters)) for s in fabric.splitters]
    inner = max(
        _SMALLEST_PICTURE,
        sum(rack_widths) + _GAP * len(rack_widths),
        sum(splitter_widths) + _GAP * len(splitter_widths),
    )
    layout = Layout(width=inner + LABEL_STRIP + 2 * MARGIN)
    _place_switches(layout, fabric)
    _place_racks(layout, fabric, rack_widths)
    _place_splitters(layout, fabric, splitter_widths)
    return layout


def _rack_widths(racks: Sequence[RackStatus]) -> list[float]:
    share = _SMALLEST_PICTURE / max(len(racks), 1) - _GAP
    common = min(max(share, _SMALLEST_RACK), _LARGEST_RACK)
    return [max(common, _PORT_WIDTH * len(rack.opticalPorts)) for rack in racks]


def _leg_pitch(splitters: Sequence[SplitterStatus]) -> float:
    # Splitters of many ways keep to what the racks' row needs anyway.
    widest = max((s.ways for s in splitters), default=1)
    return _LEG_PITCH if widest <= 8 else max(6.0, _LEG_PITCH * 8 / widest)


def _splitter_width(ways: int, pitch: float) -> float:
    return max((ways + 2) * pitch, 64.0)


def _place_switches(layout: Layout, fabric: FabricStatus) -> None:
    names = [switch.name for switch in fabric.opticalSwitches]
    # Curves that reach far need height to stay apart.
    height = min(150.0 + 3.0 * len(fabric.racks), 240.0)
    y = MARGIN + TITLE_HEIGHT + SPLITTER_HEIGHT + SPLITTER_FIBRE
    gaps = _GAP * (len(names) - 1)
    width = (layout.width - 2 * MARGIN - gaps) / max(len(names), 1)
    for number, name in enumerate(names):
        layout.switches[name] = Box(MARGIN + number * (width + _GAP), y, width, height)
    layout.height = y + height + RACK_FIBRE


def _place_racks(layout: Layout, fabric: FabricStatus, widths: Sequence[float]) -> None:
    y = layout.height
    lines = max((min(len(rack.hosts), HOSTS_SHOWN + 1) for rack in fabric.racks), default=0)
    left = MARGIN + LABEL_STRIP
    slack = (layout.width - MARGIN - left - sum(widths)) / max(len(widths), 1)
    x = left + slack / 2
    for rack, width in zip(fabric.racks, widths, strict=True):
        box = Box(x, y, width, TOR_HEIGHT)
        layout.racks.append((rack, box))
        first = box.middle.x - _PORT_WIDTH * (len(rack.opticalPorts) - 1) / 2
        layout.ports += [(port, Point(first + n * _PORT_WIDTH, y)) for n, port in enumerate(rack.opticalPorts)]
        x += width + slack
    _connect_ports(layout)
    layout.height = y + TOR_HEIGHT + lines * HOST_LINE + 14.0


def _connect_ports(layout: Layout) -> None:
    for name, box in layout.switches.items():
        ports = [(port, near) for port, near in layout.ports if port.opticalSwitch == name]
        for number, (port, near) in enumerate(ports):
            # Below the only switch a fibre runs straight up; several switches share the width.
            x = near.x if len(layout.switches) == 1 else _spread(box, number, len(ports))
            layout.into_switch[name, port.switchInput] = Fibre(
                Point(near.x - _PAIR, near.y), Point(x - _PAIR, box.bottom)
            )
            layout.out_of_switch[name, port.switchOutput] = Fibre(
                Point(near.x + _PAIR, near.y), Point(x + _PAIR, box.bottom)
            )


def _place_splitters(layout: Layout, fabric: FabricStatus, widths: Sequence[float]) -> None:
    pitch = _leg_pitch(fabric.splitters)
    y = MARGIN + TITLE_HEIGHT
    for name, switch in layout.switches.items():
        own = [(s, w) for s, w in zip(fabric.splitters, widths, strict=True) if s.opticalSwitch == name]
        room = switch.width - LABEL_STRIP
        slack = (room - sum(width for _, width in own)) / max(len(own), 1)
        x = switch.x + LABEL_STRIP + slack / 2
        for splitter, width in own:
            box = Box(x, y, width, SPLITTER_HEIGHT)
            layout.splitters.append((splitter, box))
            _connect_splitter(layout, splitter, box, switch.y, pitch)
            x += width + slack


def _connect_splitter(layout: Layout, splitter: SplitterStatus, box: Box, y: float, pitch: float) -> None:
    # The input stands a little apart from the legs.
    first = box.middle.x - pitch * (splitter.ways + 0.5) / 2

    def fibre(x: float) -> Fibre:
        return Fibre(Point(x, box.bottom), Point(x, y))

    layout.out_of_switch[splitter.opticalSwitch, splitter.switchOutput] = fibre(first)
    for number, leg in enumerate(splitter.switchInputs):
        layout.into_switch[splitter.opticalSwitch, leg] = fibre(first + pitch * (number + 1.5))


def _spread(box: Box, number: int, count: int) -> float:
    return box.x + LABEL_STRIP + (box.width - LABEL_STRIP) * (number + 0.5) / max(count, 1)
