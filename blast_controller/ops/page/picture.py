"""Where the pieces of the fabric stand, as the page's script draws them: the layout of `blast fabric svg` as JSON."""

from __future__ import annotations

from collections.abc import Mapping

from blast_base.drawing.geometry import Box, Fiber, Point
from blast_base.drawing.layout import FabricLayout

Value = dict[str, object]


def picture(layout: FabricLayout) -> Value:
    """Return plain values for JSON, with exact coordinates, so that paths are identical to those of the SVG file."""
    return {
        "width": layout.width,
        "height": layout.height,
        "hostsShown": layout.hosts_shown,
        "switches": [{"name": name, **_box(box)} for name, box in layout.switches.items()],
        "splitters": [
            {"name": splitter.name, "fanOut": splitter.fanOut, "opticalSwitch": splitter.opticalSwitch, **_box(box)}
            for splitter, box in layout.splitters
        ],
        "racks": [{"name": rack.name, **_box(box)} for rack, box in layout.racks],
        "intoSwitch": _fibers(layout.into_switch),
        "outOfSwitch": _fibers(layout.out_of_switch),
    }


def _box(box: Box) -> Value:
    return {"x": box.x, "y": box.y, "width": box.width, "height": box.height}


def _fibers(fibers: Mapping[tuple[str, int], Fiber]) -> list[Value]:
    return [
        {
            "opticalSwitch": switch,
            "port": port,
            "near": _point(fiber.near),
            "far": _point(fiber.far),
            **({"bends": [_point(bend) for bend in fiber.bends]} if fiber.bends else {}),
        }
        for (switch, port), fiber in fibers.items()
    ]


def _point(point: Point) -> list[float]:
    return [point.x, point.y]
