"""A picture of the fabric: the way of the light from root over switch and splitters to the leaves.

Everything that carries light has the colour of its light tree; what is free is grey, what is unusable has a red
cross and a line in the legend. The style sheet knows light and dark pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from blast_api.ttypes import FabricStatus, LightTreeStatus, RackStatus, SplitterStatus
from blast_client.fabric_layout import (
    HOST_LINE,
    HOSTS_SHOWN,
    LABEL_STRIP,
    MARGIN,
    Box,
    Fibre,
    Layout,
    Point,
    lay_out,
)
from blast_client.text_table import shortened
from blast_client.units import format_rate

_COLOURS = (
    *("#e8590c", "#1c7ed6", "#2f9e44", "#ae3ec9", "#e0a100"),
    *("#0c8599", "#e64980", "#7950f2", "#66a80f", "#a0522d"),
)
_LEGEND_LINE = 22.0
_LEGEND_ROWS = 12
_CHARACTER = 0.6
"""Width of a character relative to the font's size, a little on the safe side."""

_STYLE = """
text { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", Helvetica, Arial, sans-serif; fill: #1f2933 }
.card { fill: #ffffff; stroke: #d5dbe1 } .switch { fill: #f3f6f9; stroke: #8a97a6; stroke-width: 1.5 }
.box { fill: #e6ebf0; stroke: #8a97a6; stroke-width: 1.2 } .fibre { stroke: #c3ccd5; stroke-width: 1.2; fill: none }
.halo { stroke: #f3f6f9; fill: none } .faint { fill: #66727f } .away { stroke-dasharray: 4 3; opacity: 0.55 }
.light { fill: none; stroke-linecap: round; stroke-linejoin: round }
.bad { stroke: #d6204a; stroke-width: 2.4; stroke-linecap: round; fill: none }
.badtext { fill: #d6204a } .onroot { fill: #ffffff }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .card { fill: #0d1117; stroke: #30363d } .switch { fill: #161b22; stroke: #6e7b8a }
.box { fill: #222a33; stroke: #6e7b8a } .fibre { stroke: #3d4753 } .halo { stroke: #161b22 } .faint { fill: #9aa7b4 }
.badtext { fill: #ff6b87 } .onroot { fill: #ffffff } }
"""

_LINE_STYLES = {
    "configuring": 'stroke-width="2.6" stroke-dasharray="6 5"',
    "changing": 'stroke-width="2.6" stroke-dasharray="6 5"',
    "idle": 'stroke-width="2" opacity="0.45"',
    "releasing": 'stroke-width="2" stroke-dasharray="2 5" opacity="0.6"',
}
_LIT = 'stroke-width="3"'


def fabric_svg(fabric: FabricStatus) -> str:
    """Draw the fabric as an SVG document."""
    layout = lay_out(fabric)
    colours = {tree.reservation: _colour(number) for number, tree in enumerate(fabric.lightTrees)}
    legend = _legend(fabric, colours, layout.width)
    height = layout.height + len(legend) * _LEGEND_LINE + MARGIN
    parts = [
        _title(fabric, layout),
        *(_switch(name, box, _away(fabric, name)) for name, box in layout.switches.items()),
        *(_idle_fibre(fibre) for fibre in (*layout.into_switch.values(), *layout.out_of_switch.values())),
        *(_splitter(splitter, box) for splitter, box in layout.splitters),
        *(_rack(rack, box, fabric.lightTrees, colours) for rack, box in layout.racks),
        *(_tree(tree, layout, colours[tree.reservation]) for tree in fabric.lightTrees),
        *(_splitter_label(splitter, box) for splitter, box in layout.splitters),
        *_unusable_ports(layout),
        *(
            f'<g transform="translate(0 {layout.height + (row + 0.5) * _LEGEND_LINE:.1f})">{line}</g>'
            for row, line in enumerate(legend)
        ),
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {layout.width:.0f} {height:.0f}" '
        f'width="{layout.width:.0f}" height="{height:.0f}" role="img">\n<style>{_STYLE}</style>\n'
        f'<rect class="card" x="0.5" y="0.5" width="{layout.width - 1:.0f}" height="{height - 1:.0f}" rx="10"/>\n'
        + "\n".join(part for part in parts if part)
        + "\n</svg>\n"
    )


# ---------------------------------------------------------------------- what stands


def _title(fabric: FabricStatus, layout: Layout) -> str:
    counts = (
        f"{_count(fabric.racks, 'rack')} · {_count(fabric.splitters, 'splitter')} · "
        f"{_count(fabric.lightTrees, 'light tree')} · {fabric.pendingRequests} pending · "
        f"light {format_rate(fabric.lightRateBitsPerSecond)}"
    )
    y = MARGIN + 12
    return (
        f'<text x="{MARGIN}" y="{y}" font-size="17" font-weight="600">Optical fabric</text>'
        f'<text class="faint" x="{layout.width - MARGIN}" y="{y}" font-size="13" text-anchor="end">{counts}</text>'
    )


def _switch(name: str, box: Box, away: bool) -> str:
    x, y = box.x + LABEL_STRIP / 2 + 2, box.middle.y
    label = _fitted(f"{name} (away)" if away else name, box.height - 12, 14)
    return (
        f"<g{_away_class(away)}><title>optical switch {escape(name)}</title>{_rectangle('switch', box, 8)}"
        f'<text x="{x:.1f}" y="{y:.1f}" font-weight="600" {label.attributes} text-anchor="middle" '
        f'transform="rotate(-90 {x:.1f} {y:.1f})" dy="0.35em">{label.text}</text></g>'
    )


def _splitter(splitter: SplitterStatus, box: Box) -> str:
    note = splitter.unusable or (f"tree {splitter.reservation}" if splitter.reservation is not None else "free")
    name = f"splitter {splitter.name}, 1:{splitter.ways}: {note}"
    return f"<g><title>{escape(name)}</title>{_rectangle('box', box, 6)}</g>"


def _splitter_label(splitter: SplitterStatus, box: Box) -> str:
    label = _fitted(f"{splitter.name}  1:{splitter.ways}", box.width - 8, 13)
    text = _centred(label, box.middle.x, box.y + 14)
    return text + (_cross(Point(box.x + box.width - 2, box.y + 2)) if splitter.unusable else "")


def _rack(rack: RackStatus, box: Box, trees: Sequence[LightTreeStatus], colours: Mapping[int, str]) -> str:
    """A ToR with its hosts: filled where a tree has its root, outlined where a tree has a leaf."""
    own = [t for t in trees if t.rootRack == rack.name] or [t for t in trees if rack.name in t.leafRacks]
    style = name_kind = ""
    if own:
        colour = colours[own[0].reservation]
        is_root = own[0].rootRack == rack.name
        style = f' style="stroke: {colour}; stroke-width: 2.4{f"; fill: {colour}" if is_root else ""}"'
        name_kind = "onroot" if is_root else ""
    parts = [
        f"<title>rack {escape(rack.name)}, ToR {escape(rack.datapath)}</title>",
        _rectangle("box", box, 5, style),
        _centred(_fitted(rack.name, box.width - 8, 13), box.middle.x, box.middle.y, "600", name_kind),
    ]
    hosts = list(rack.hosts[:HOSTS_SHOWN])
    if len(rack.hosts) > HOSTS_SHOWN + 1:
        hosts.append(f"+ {len(rack.hosts) - HOSTS_SHOWN}")
    else:
        hosts = list(rack.hosts)
    for line, host in enumerate(hosts):
        y = box.bottom + (line + 0.8) * HOST_LINE
        parts.append(_centred(_fitted(host, box.width, 11), box.middle.x, y, kind="faint"))
    return f"<g{_away_class(not rack.connected)}>{''.join(parts)}</g>"


def _idle_fibre(fibre: Fibre) -> str:
    return f'<path class="fibre" d="{_fibre_path(fibre)}"/>'


def _unusable_ports(layout: Layout) -> Iterable[str]:
    for port, point in layout.ports:
        if port.unusable:
            yield f"<g><title>{escape(port.unusable)}</title>{_cross(Point(point.x, point.y - 10))}</g>"


# ---------------------------------------------------------------------- the light


def _tree(tree: LightTreeStatus, layout: Layout, colour: str) -> str:
    """Fibres, cross-connects and splitters of one tree, in its colour."""
    paths, heads = [], []
    used_legs: set[tuple[str, int]] = set()
    for connection in tree.crossConnects:
        source = layout.into_switch.get((connection.opticalSwitch, connection.switchInput))
        target = layout.out_of_switch.get((connection.opticalSwitch, connection.switchOutput))
        used_legs.add((connection.opticalSwitch, connection.switchInput))
        if source is None or target is None:
            continue
        paths.append((_fibre_path(source), False))
        paths.append((_circuit_path(source.far, target.far, layout.switches[connection.opticalSwitch]), True))
        paths.append((_fibre_path(target), False))
        heads += [_arrow(source.near, source.far, colour), _arrow(target.far, target.near, colour)]
    for splitter, box in layout.splitters:
        if splitter.name in tree.splitters:
            paths.append((_comb_path(splitter, box, layout, used_legs), False))
    style = _LINE_STYLES.get(tree.state, _LIT)
    halos = "".join(f'<path class="halo" stroke-width="7" d="{path}"/>' for path, crosses in paths if crosses)
    lines = "".join(f'<path class="light" stroke="{colour}" {style} d="{path}"/>' for path, _ in paths if path)
    title = f"tree {tree.reservation} ({tree.state}): {tree.key}, from {tree.rootRack} to {', '.join(tree.leafRacks)}"
    return f"<g><title>{escape(title)}</title>{halos}{lines}{''.join(heads)}</g>"


def _fibre_path(fibre: Fibre) -> str:
    near, far = fibre.near, fibre.far
    if near.x == far.x:
        return f"M{near.x:.1f} {near.y:.1f}V{far.y:.1f}"
    middle = (near.y + far.y) / 2
    return f"M{near.x:.1f} {near.y:.1f}C{near.x:.1f} {middle:.1f} {far.x:.1f} {middle:.1f} {far.x:.1f} {far.y:.1f}"


def _circuit_path(start: Point, end: Point, box: Box) -> str:
    """A cross-connect: an S between the two edges of the switch, an arch between two points of one edge."""
    if start.y != end.y:
        bend = (start.y + end.y) / 2
    else:
        depth = min(36.0 + abs(start.x - end.x) * 0.35, box.height * 1.1)
        bend = start.y + (depth if start.y == box.y else -depth)
    return f"M{start.x:.1f} {start.y:.1f}C{start.x:.1f} {bend:.1f} {end.x:.1f} {bend:.1f} {end.x:.1f} {end.y:.1f}"


def _comb_path(splitter: SplitterStatus, box: Box, layout: Layout, used: set[tuple[str, int]]) -> str:
    """Inside a splitter: from the input to each leg that carries light on."""
    switch = splitter.opticalSwitch
    trunk = layout.out_of_switch[switch, splitter.switchOutput].near
    legs = [layout.into_switch[switch, leg].near for leg in splitter.switchInputs if (switch, leg) in used]
    if not legs:
        return ""
    bar = box.bottom - 20
    teeth = "".join(f"M{leg.x:.1f} {bar:.1f}V{leg.y:.1f}" for leg in legs)
    return f"M{trunk.x:.1f} {trunk.y:.1f}V{bar:.1f}H{max(leg.x for leg in legs):.1f}{teeth}"


def _arrow(start: Point, end: Point, colour: str) -> str:
    """A head in the middle of a fibre, pointing the way of the light."""
    x, y = (start.x + end.x) / 2, (start.y + end.y) / 2
    tip = 5.0 if end.y > start.y else -5.0
    return f'<path fill="{colour}" d="M{x - 4.5:.1f} {y - tip:.1f}H{x + 4.5:.1f}L{x:.1f} {y + tip:.1f}Z"/>'


# ---------------------------------------------------------------------- the legend


def _legend(fabric: FabricStatus, colours: dict[int, str], width: float) -> list[str]:
    """One piece of SVG a row, each drawn at height 0."""
    rows = [_legend_tree(tree, colours[tree.reservation], width) for tree in fabric.lightTrees[:_LEGEND_ROWS]]
    if len(fabric.lightTrees) > _LEGEND_ROWS:
        rows.append(_legend_text(f"… and {len(fabric.lightTrees) - _LEGEND_ROWS} more light trees", width))
    if not fabric.lightTrees:
        rows.append(_legend_text("no light trees", width, "faint"))
    faults = list(_faults(fabric))
    cross = _cross(Point(MARGIN + 17, 0))
    rows += [cross + _legend_text(fault, width, "badtext") for fault in faults[:_LEGEND_ROWS]]
    if len(faults) > _LEGEND_ROWS:
        rows.append(_legend_text(f"… and {len(faults) - _LEGEND_ROWS} more that cannot be used", width, "badtext"))
    return rows


def _legend_tree(tree: LightTreeStatus, colour: str, width: float) -> str:
    way = [tree.rootRack, *([shortened(tree.splitters, 3)] if tree.splitters else []), shortened(tree.leafRacks, 8)]
    words = [f"tree {tree.reservation}", tree.key, tree.state, tree.groupAddress, " → ".join(way)]
    style = _LINE_STYLES.get(tree.state, _LIT)
    line = f'<path class="light" stroke="{colour}" {style} d="M{MARGIN} 0h34"/>'
    return line + _legend_text(" · ".join(words), width)


def _faults(fabric: FabricStatus) -> Iterable[str]:
    for switch in fabric.opticalSwitches:
        if not switch.connected:
            yield f"optical switch {switch.name} is away" + (f": {switch.reason}" if switch.reason else "")
    for splitter in fabric.splitters:
        if splitter.unusable:
            yield f"splitter {splitter.name}: {splitter.unusable}"
    for rack in fabric.racks:
        if not rack.connected:
            yield f"rack {rack.name}: its ToR is away"
        for port in rack.opticalPorts:
            if port.unusable:
                yield f"port {rack.name}/{port.port}: {port.unusable}"


def _legend_text(text: str, width: float, kind: str = "") -> str:
    indent = MARGIN + 46
    longest = int((width - indent - MARGIN) / (13 * 0.54))
    shown = text if len(text) <= longest else text[: longest - 1] + "…"
    return f'<text class="{kind}" x="{indent}" y="0" font-size="13" dy="0.35em">{escape(shown)}</text>'


# ---------------------------------------------------------------------- pieces


class _Label:
    """Text cut and scaled to a width."""

    def __init__(self, text: str, size: float) -> None:
        self.text = escape(text)
        self.attributes = f'font-size="{size:.3g}"'


def _fitted(text: str, width: float, size: float) -> _Label:
    fitting = min(size, width / (max(len(text), 1) * _CHARACTER))
    if fitting >= 8:
        return _Label(text, fitting)
    return _Label(text[: max(int(width / (8 * _CHARACTER)) - 1, 1)] + "…", 8)


def _centred(label: _Label, x: float, y: float, weight: str = "400", kind: str = "") -> str:
    of_kind = f'class="{kind}" ' if kind else ""
    return (
        f'<text {of_kind}x="{x:.1f}" y="{y:.1f}" {label.attributes} font-weight="{weight}" text-anchor="middle" '
        f'dy="0.35em">{label.text}</text>'
    )


def _rectangle(kind: str, box: Box, radius: float, more: str = "") -> str:
    return (
        f'<rect class="{kind}" x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" '
        f'rx="{radius:g}"{more}/>'
    )


def _cross(at: Point) -> str:
    x, y, arm = at.x, at.y, 5.5
    return f'<path class="bad" d="M{x - arm:g} {y - arm:g}l{2 * arm} {2 * arm}m0 {-2 * arm}l{-2 * arm} {2 * arm}"/>'


def _away(fabric: FabricStatus, switch: str) -> bool:
    return any(s.name == switch and not s.connected for s in fabric.opticalSwitches)


def _away_class(away: bool) -> str:
    return ' class="away"' if away else ""


def _colour(number: int) -> str:
    # Beyond the chosen colours, hues by the golden angle stay as far apart as possible.
    return _COLOURS[number] if number < len(_COLOURS) else f"hsl({number * 137.508 % 360:.0f}, 65%, 45%)"


def _count(things: Sequence[object], name: str) -> str:
    return f"{len(things)} {name}" + ("" if len(things) == 1 else "s")
