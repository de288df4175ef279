"""Light trees in the picture of a fabric: fibers, cross-connects and splitters in the color of each tree."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from math import hypot

from blast_api.ttypes import LightTreeStatus, SplitterStatus
from blast_base.drawing.geometry import Box, Fiber, Point
from blast_base.drawing.layout import FabricLayout

_COLORS = (
    *("#e8590c", "#1c7ed6", "#2f9e44", "#ae3ec9", "#e0a100"),
    *("#0c8599", "#e64980", "#7950f2", "#66a80f", "#a0522d"),
    *("#12b886", "#4263eb", "#d63fb8", "#b8b000"),
)
_LINE_STYLES = {
    "configuring": 'stroke-dasharray="6 5"',
    "changing": 'stroke-dasharray="6 5"',
    "idle": 'opacity="0.5"',
    "releasing": 'stroke-dasharray="2 5" opacity="0.6"',
}
_CORNER = 3.0
"""Radius in pixels."""


def color(number: int) -> str:
    """Return the color of a tree by its position in the list; beyond the palette, hues differ by the golden angle."""
    return _COLORS[number] if number < len(_COLORS) else f"hsl({number * 137.508 % 360:.0f}, 65%, 45%)"


def line_style(state: str, width: float = 3.0) -> str:
    """Return the line attributes of a state: solid for lit, faint for idle, dashed during a change."""
    style = _LINE_STYLES.get(state)
    return f'stroke-width="{width:g}"' if style is None else f'stroke-width="{width - 0.6:g}" {style}'


def tree_svg(tree: LightTreeStatus, layout: FabricLayout, stroke: str) -> str:
    """Draw one tree."""
    paths, heads = [], []
    used_outputs: set[tuple[str, int]] = set()
    size = 5.0 if layout.hosts_shown else 3.4
    for connection in tree.crossConnects:
        source = layout.into_switch.get((connection.opticalSwitch, connection.switchInput))
        target = layout.out_of_switch.get((connection.opticalSwitch, connection.switchOutput))
        used_outputs.add((connection.opticalSwitch, connection.switchInput))
        if source is None or target is None:
            continue
        paths.append((fiber_path(source), False))
        paths.append((_circuit_path(source.far, target.far, layout.switches[connection.opticalSwitch]), True))
        paths.append((fiber_path(target), False))
        heads += [_arrow(source, 1, size, stroke), _arrow(target, -1, size, stroke)]
    for splitter, box in layout.splitters:
        if splitter.name in tree.splitters:
            paths.append((_comb_path(splitter, box, layout, used_outputs), False))
    style = line_style(tree.state, 3.0 if layout.hosts_shown else 2.0)
    halo = 7 if layout.hosts_shown else 5
    halos = "".join(f'<path class="halo" stroke-width="{halo}" d="{path}"/>' for path, crosses in paths if crosses)
    lines = "".join(f'<path class="light" stroke="{stroke}" {style} d="{path}"/>' for path, _ in paths if path)
    title = f"tree {tree.reservation} ({tree.state}): {tree.key}, from {tree.rootRack} to {', '.join(tree.leafRacks)}"
    return f"<g><title>{escape(title)}</title>{halos}{lines}{''.join(heads)}</g>"


def fiber_path(fiber: Fiber) -> str:
    """Return the path of a fiber from its element to the switch: rounded corners, and an S curve for a shift."""
    start, far = fiber.last, fiber.far
    path = f"M{fiber.near.x:.1f} {fiber.near.y:.1f}" + "".join(_corners(fiber))
    if start.x == far.x:
        return path + f"V{far.y:.1f}"
    middle = (start.y + far.y) / 2
    return path + f"C{start.x:.1f} {middle:.1f} {far.x:.1f} {middle:.1f} {far.x:.1f} {far.y:.1f}"


def _corners(fiber: Fiber) -> Iterator[str]:
    # The last segment leaves its corner vertically.
    points = (fiber.near, *fiber.bends, Point(fiber.last.x, fiber.far.y))
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        start, end = _corner_end(corner, before), _corner_end(corner, after)
        yield f"L{start.x:.1f} {start.y:.1f}Q{corner.x:.1f} {corner.y:.1f} {end.x:.1f} {end.y:.1f}"


def _corner_end(start: Point, end: Point) -> Point:
    """Return the point of a straight line where its rounded corner ends."""
    length = hypot(end.x - start.x, end.y - start.y)
    share = min(_CORNER / length, 0.5) if length else 0.0
    return Point(start.x + share * (end.x - start.x), start.y + share * (end.y - start.y))


def _circuit_path(start: Point, end: Point, box: Box) -> str:
    """Return the path of a cross-connect: an S between two edges of the switch, an arch between points of one edge."""
    if start.y != end.y:
        bend = (start.y + end.y) / 2
    else:
        depth = min(36.0 + abs(start.x - end.x) * 0.35, box.height * 1.1)
        bend = start.y + (depth if start.y == box.y else -depth)
    return f"M{start.x:.1f} {start.y:.1f}C{start.x:.1f} {bend:.1f} {end.x:.1f} {bend:.1f} {end.x:.1f} {end.y:.1f}"


def _comb_path(splitter: SplitterStatus, box: Box, layout: FabricLayout, used: set[tuple[str, int]]) -> str:
    """Return the path inside a splitter, from its input to each output that the tree uses."""
    switch = splitter.opticalSwitch
    trunk = layout.out_of_switch[switch, splitter.switchOutput].near
    outputs = [layout.into_switch[switch, output].near for output in splitter.switchInputs if (switch, output) in used]
    if not outputs:
        return ""
    bar = box.bottom - 20
    teeth = "".join(f"M{output.x:.1f} {bar:.1f}V{output.y:.1f}" for output in outputs)
    return f"M{trunk.x:.1f} {trunk.y:.1f}V{bar:.1f}H{max(output.x for output in outputs):.1f}{teeth}"


def _arrow(fiber: Fiber, to_switch: int, size: float, fill: str) -> str:
    """Return an arrow head near the switch, clear of boxes: into the switch (1) or out of it (-1)."""
    x, y = _near_the_switch(fiber)
    tip = (size if fiber.far.y > fiber.near.y else -size) * to_switch
    wide = 0.9 * size
    return f'<path fill="{fill}" d="M{x - wide:.1f} {y - tip:.1f}H{x + wide:.1f}L{x:.1f} {y + tip:.1f}Z"/>'


def _near_the_switch(fiber: Fiber) -> tuple[float, float]:
    start, far = fiber.last, fiber.far
    if start.x != far.x:
        return (start.x + far.x) / 2, (start.y + far.y) / 2
    direction = 1 if far.y > start.y else -1
    return far.x, far.y - direction * min(abs(far.y - start.y) / 2, 23.0)
