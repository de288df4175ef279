"""The legend below the picture of a fabric: light trees in their colors, and the reasons of unusable elements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

from blast_api.ttypes import FabricStatus, LightTreeStatus
from blast_base.drawing.geometry import Point
from blast_base.drawing.layout import MARGIN
from blast_client.cli.text_table import shortened
from blast_client.fabric.light_svg import line_style
from blast_client.fabric.svg_pieces import cross

_ROWS = 12
"""Trees with a row of their own; the picture should stay larger than its legend."""


def legend(fabric: FabricStatus, colors: Mapping[int, str], width: float) -> list[str]:
    """Return one SVG fragment for each row, drawn at height 0: light trees, then unusable elements."""
    rows = [_tree(tree, colors[tree.reservation], width) for tree in fabric.lightTrees[:_ROWS]]
    if len(fabric.lightTrees) > _ROWS:
        rows.append(_text(f"… and {len(fabric.lightTrees) - _ROWS} more light trees", width))
    if not fabric.lightTrees:
        rows.append(_text("no light trees", width, "faint"))
    faults = list(_faults(fabric))
    mark = cross(Point(MARGIN + 17, 0))
    rows += [mark + _text(fault, width, "badtext") for fault in faults[:_ROWS]]
    if len(faults) > _ROWS:
        rows.append(_text(f"… and {len(faults) - _ROWS} more unusable elements", width, "badtext"))
    return rows


def _tree(tree: LightTreeStatus, color: str, width: float) -> str:
    path = [tree.rootRack, *([shortened(tree.splitters, 3)] if tree.splitters else []), shortened(tree.leafRacks, 8)]
    words = [f"tree {tree.reservation}", tree.key, tree.state, tree.groupAddress, " → ".join(path)]
    style = line_style(tree.state)
    line = f'<path class="light" stroke="{color}" {style} d="M{MARGIN} 0h34"/>'
    return line + _text(" · ".join(words), width)


def _faults(fabric: FabricStatus) -> Iterable[str]:
    for switch in fabric.opticalSwitches:
        if not switch.connected:
            yield f"optical switch {switch.name} is disconnected" + (f": {switch.reason}" if switch.reason else "")
    for splitter in fabric.splitters:
        if splitter.unusable:
            yield f"splitter {splitter.name}: {splitter.unusable}"
    for rack in fabric.racks:
        if not rack.connected:
            yield f"rack {rack.name}: its ToR is disconnected"
        for port in rack.opticalPorts:
            if port.unusable:
                yield f"port {rack.name}/{port.port}: {port.unusable}"


def _text(text: str, width: float, kind: str = "") -> str:
    indent = MARGIN + 46
    longest = int((width - indent - MARGIN) / (13 * 0.54))
    shown = text if len(text) <= longest else text[: longest - 1] + "…"
    return f'<text class="{kind}" x="{indent}" y="0" font-size="13" dy="0.35em">{escape(shown)}</text>'
