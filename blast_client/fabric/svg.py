"""SVG picture of the fabric: the path of each light tree from its root over switches and splitters to its leaves.

Elements in use have the color of their light tree, free ones are gray, and unusable ones have a red cross and a line in
the legend. The style sheet supports light and dark pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from blast_api.ttypes import FabricStatus, LightTreeStatus, RackStatus, SplitterStatus
from blast_base.drawing.geometry import Box, Point
from blast_base.drawing.layout import HOST_LINE, LABEL_STRIP, MARGIN, FabricLayout, lay_out
from blast_client.cli.units import format_rate
from blast_client.fabric.legend import legend
from blast_client.fabric.light_svg import color, fiber_path, tree_svg
from blast_client.fabric.svg_pieces import Label, centerd, common_size, count, cross, cut_in_front, fitted, rectangle

_LEGEND_LINE = 22.0
_BESIDE = 10.0
"""Width of the gap between two racks that names of hosts may use."""

_STYLE = """
text { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", Helvetica, Arial, sans-serif; fill: #1f2933 }
.card { fill: #ffffff; stroke: #d5dbe1 } .switch { fill: #f3f6f9; stroke: #8a97a6; stroke-width: 1.5 }
.box { fill: #e6ebf0; stroke: #8a97a6; stroke-width: 1.2 } .fiber { stroke: #c3ccd5; fill: none }
.halo { stroke: #f3f6f9; fill: none } .faint { fill: #66727f } .away { stroke-dasharray: 4 3; opacity: 0.55 }
.light { fill: none; stroke-linecap: round; stroke-linejoin: round }
.bad { stroke: #d6204a; stroke-width: 2.4; stroke-linecap: round; fill: none }
.badtext { fill: #d6204a } .onroot { fill: #ffffff }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .card { fill: #0d1117; stroke: #30363d } .switch { fill: #161b22; stroke: #6e7b8a }
.box { fill: #222a33; stroke: #6e7b8a } .fiber { stroke: #4a5665 } .halo { stroke: #161b22 } .faint { fill: #9aa7b4 }
.badtext { fill: #ff6b87 } .onroot { fill: #ffffff } }
"""


@dataclass(frozen=True, slots=True)
class _Look:
    """Colors and font sizes common to all racks and splitters."""

    colors: Mapping[int, str]
    splitter_font: float
    rack_font: float
    host_font: float
    hosts_shown: int


def fabric_svg(fabric: FabricStatus) -> str:
    """Draw the fabric as an SVG document."""
    layout = lay_out(fabric)
    look = _look(fabric, layout)
    rows = legend(fabric, look.colors, layout.width)
    height = layout.height + len(rows) * _LEGEND_LINE + MARGIN
    parts = [
        _title(fabric, layout),
        *(_switch(name, box, _away(fabric, name)) for name, box in layout.switches.items()),
        _fibers(layout),
        *(_splitter(splitter, box) for splitter, box in layout.splitters),
        *(_rack(rack, box, fabric.lightTrees, look) for rack, box in layout.racks),
        *(tree_svg(tree, layout, look.colors[tree.reservation]) for tree in fabric.lightTrees),
        *(_splitter_label(splitter, box, look.splitter_font) for splitter, box in layout.splitters),
        *_unusable_ports(layout),
        *(
            f'<g transform="translate(0 {layout.height + (row + 0.5) * _LEGEND_LINE:.1f})">{line}</g>'
            for row, line in enumerate(rows)
        ),
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {layout.width:.0f} {height:.0f}" '
        f'width="{layout.width:.0f}" height="{height:.0f}" role="img">\n<style>{_STYLE}</style>\n'
        f'<rect class="card" x="0.5" y="0.5" width="{layout.width - 1:.0f}" height="{height - 1:.0f}" rx="10"/>\n'
        + "\n".join(part for part in parts if part)
        + "\n</svg>\n"
    )


def _look(fabric: FabricStatus, layout: FabricLayout) -> _Look:
    narrowest_rack = min((box.width for _, box in layout.racks), default=0.0)
    narrowest_splitter = min((box.width for _, box in layout.splitters), default=0.0)
    hosts = [host for rack in fabric.racks for host in rack.hosts[: layout.hosts_shown + 1]]
    return _Look(
        {tree.reservation: color(number) for number, tree in enumerate(fabric.lightTrees)},
        common_size([_splitter_text(splitter) for splitter in fabric.splitters], narrowest_splitter - 8, 13),
        common_size([rack.name for rack in fabric.racks], narrowest_rack - 8, 13),
        common_size(hosts, narrowest_rack + _BESIDE, 11),
        layout.hosts_shown,
    )


def _title(fabric: FabricStatus, layout: FabricLayout) -> str:
    counts = (
        f"{count(fabric.racks, 'rack')} · {count(fabric.splitters, 'splitter')} · "
        f"{count(fabric.lightTrees, 'light tree')} · {fabric.pendingParts} pending · "
        f"light {format_rate(fabric.opticalRateBitsPerSecond)}"
    )
    y = MARGIN + 12
    return (
        f'<text x="{MARGIN}" y="{y}" font-size="17" font-weight="600">Optical fabric</text>'
        f'<text class="faint" x="{layout.width - MARGIN}" y="{y}" font-size="13" text-anchor="end">{counts}</text>'
    )


def _switch(name: str, box: Box, away: bool) -> str:
    x, y = box.x + LABEL_STRIP / 2 + 2, box.middle.y
    label = fitted(f"{name} (disconnected)" if away else name, box.height - 12, 14)
    return (
        f"<g{_away_class(away)}><title>optical switch {escape(name)}</title>{rectangle('switch', box, 8)}"
        f'<text x="{x:.1f}" y="{y:.1f}" font-weight="600" {label.attributes} text-anchor="middle" '
        f'transform="rotate(-90 {x:.1f} {y:.1f})" dy="0.35em">{label.text}</text></g>'
    )


def _splitter(splitter: SplitterStatus, box: Box) -> str:
    note = splitter.unusable or (f"tree {splitter.reservation}" if splitter.reservation is not None else "free")
    name = f"splitter {splitter.name}, 1:{splitter.fanOut}: {note}"
    return f"<g><title>{escape(name)}</title>{rectangle('box', box, 6)}</g>"


def _splitter_text(splitter: SplitterStatus) -> str:
    return f"{splitter.name}  1:{splitter.fanOut}"


def _splitter_label(splitter: SplitterStatus, box: Box, font: float) -> str:
    label = fitted(_splitter_text(splitter), box.width - 8, font)
    text = centerd(label, box.middle.x, box.y + 14)
    return text + (cross(Point(box.x + box.width - 2, box.y + 2)) if splitter.unusable else "")


def _rack(rack: RackStatus, box: Box, trees: Sequence[LightTreeStatus], look: _Look) -> str:
    """Return a ToR with its hosts: filled if it is the root of a tree, outlined if it is a leaf."""
    own = [t for t in trees if t.rootRack == rack.name] or [t for t in trees if rack.name in t.leafRacks]
    style = name_kind = ""
    if own:
        stroke = look.colors[own[0].reservation]
        is_root = own[0].rootRack == rack.name
        style = f' style="stroke: {stroke}; stroke-width: 2.4{f"; fill: {stroke}" if is_root else ""}"'
        name_kind = "onroot" if is_root else ""
    parts = [
        f"<title>rack {escape(rack.name)}, ToR {escape(rack.datapath)}, {count(rack.hosts, 'host')}</title>",
        rectangle("box", box, 5, style),
        *(_names(rack, box, look, name_kind) if look.hosts_shown else _name_and_number(rack, box, look, name_kind)),
    ]
    return f"<g{_away_class(not rack.connected)}>{''.join(parts)}</g>"


def _names(rack: RackStatus, box: Box, look: _Look, kind: str) -> Iterable[str]:
    yield centerd(fitted(rack.name, box.width - 8, look.rack_font), box.middle.x, box.middle.y, "600", kind)
    shown = len(rack.hosts) if len(rack.hosts) <= look.hosts_shown + 1 else look.hosts_shown
    width = box.width + _BESIDE
    lines = [cut_in_front(host, width, look.host_font) for host in rack.hosts[:shown]]
    lines += [f"+ {len(rack.hosts) - shown}"] if shown < len(rack.hosts) else []
    for line, text in enumerate(lines):
        y = box.bottom + (line + 0.8) * HOST_LINE
        yield centerd(Label(text, look.host_font), box.middle.x, y, kind="faint")


def _name_and_number(rack: RackStatus, box: Box, look: _Look, kind: str) -> Iterable[str]:
    x = box.middle.x
    yield centerd(fitted(rack.name, box.width - 6, look.rack_font), x, box.y + 11, "600", kind)
    yield centerd(fitted(count(rack.hosts, "host"), box.width - 6, 9), x, box.y + 22, kind=kind or "faint")


def _fibers(layout: FabricLayout) -> str:
    fibers = (*layout.into_switch.values(), *layout.out_of_switch.values())
    # Wider lines would merge in narrow lanes.
    width = 1.2 if layout.hosts_shown else 0.6
    paths = "".join(f'<path d="{fiber_path(fiber)}"/>' for fiber in fibers)
    return f'<g class="fiber" stroke-width="{width}">{paths}</g>'


def _unusable_ports(layout: FabricLayout) -> Iterable[str]:
    for port, point in layout.ports:
        if port.unusable:
            mark = cross(Point(point.x, point.y - 10)) if layout.hosts_shown else cross(Point(point.x, point.y - 6), 4)
            yield f"<g><title>{escape(port.unusable)}</title>{mark}</g>"


def _away(fabric: FabricStatus, switch: str) -> bool:
    return any(s.name == switch and not s.connected for s in fabric.opticalSwitches)


def _away_class(away: bool) -> str:
    return ' class="away"' if away else ""
