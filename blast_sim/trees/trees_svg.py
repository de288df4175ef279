"""A picture of a plan: every tree as an outline of hosts, drawn as thick as its share of the whole rate.

An outline has one line for each host, so that names stand side by side with none across another, however deep or wide
the tree is. The style sheet knows light and dark pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from algorithms.balanced.network import Network
from algorithms.balanced.plan import MulticastPlan, Tree, children, edges

COLORS = ("#1c7ed6", "#e8590c", "#2f9e44", "#ae3ec9", "#0c8599", "#e64980", "#7950f2", "#a0522d")
MAX_DRAWN = 24
ACROSS = 6
LINE, INDENT, MARGIN, HEAD = 17.0, 13.0, 18.0, 46.0
CHARACTER = 6.6
"""Width of a character of a host's name."""
LONGEST_NAME = 24
"""Characters in the width of a host."""
THICKEST, THINNEST = 7.0, 1.2

PLAIN = 'font-size="12"'
BOLD = 'font-size="12.5" font-weight="600"'
FAINT = 'class="faint" font-size="12.5"'

_STYLE = """
text { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", Helvetica, Arial, sans-serif; fill: #1f2933 }
.card { fill: #ffffff; stroke: #d5dbe1 } .panel { fill: #f6f8fa; stroke: #d5dbe1 } .faint { fill: #66727f }
.relay { fill: #f6f8fa; stroke-width: 1.6 } .edge { fill: none; stroke-linecap: round; stroke-linejoin: round }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .card { fill: #0d1117; stroke: #30363d } .panel { fill: #161b22; stroke: #30363d }
.faint { fill: #9aa7b4 } .relay { fill: #161b22 } }
"""


@dataclass(frozen=True, slots=True)
class OutlineLine:
    """A host of an outline: its number, how deep it is, and the line of its parent (None for the root)."""

    host: int
    depth: int
    parent: int | None


def trees_svg(network: Network, plan: MulticastPlan) -> str:
    """Draw the trees of a plan, the first ones where there are very many, as an SVG document."""
    outlines = [_outline(network.root, tree) for tree in plan.trees[:MAX_DRAWN]]
    panel = max(_width(network, outline) for outline in outlines)
    across = min(ACROSS, len(outlines))
    width = max(520.0, across * (panel + MARGIN) + MARGIN)
    top, parts = 74.0, []
    for first in range(0, len(outlines), across):
        row = outlines[first : first + across]
        height = HEAD + max(map(len, row)) * LINE + 8
        for place, outline in enumerate(row):
            number = first + place
            drawn = _panel(network, plan, number, outline)
            box = f'<rect class="panel" width="{panel:.0f}" height="{height:.0f}" rx="8"/>'
            x = MARGIN + place * (panel + MARGIN)
            parts.append(f'<g transform="translate({x:.1f} {top:.1f})">{box}{"".join(drawn)}</g>')
        top += height + MARGIN
    if len(plan.trees) > MAX_DRAWN:
        parts.append(_text(MARGIN, top + 4, f"… and {len(plan.trees) - MAX_DRAWN} slower trees", FAINT))
        top += 2 * MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {top:.0f}" width="{width:.0f}" '
        f'height="{top:.0f}" role="img">\n<style>{_STYLE}</style>\n'
        f'<rect class="card" x="0.5" y="0.5" width="{width - 1:.0f}" height="{top - 1:.0f}" rx="10"/>\n'
        + "\n".join([_title(network, plan), *parts])
        + "\n</svg>\n"
    )


def _title(network: Network, plan: MulticastPlan) -> str:
    trees = f"{len(plan.trees)} tree{'' if len(plan.trees) == 1 else 's'}"
    subtitle = f"{trees} · rate {plan.rate:.6g}"
    if plan.bound is not None:
        subtitle += f" · bound {plan.bound:.6g} (gap {100 * (1 - plan.rate / plan.bound):.3g} %)"
    if any(_relays(network, host) for tree in plan.trees[:MAX_DRAWN] for _, host in edges(tree)):
        subtitle += " · hollow: forwards data that it does not receive itself"
    name = f"Multicast from {network.hosts[network.root]} to {len(network.receivers)} of {network.size - 1} hosts"
    return _text(MARGIN, 32, name, 'font-size="17" font-weight="600"') + _text(MARGIN, 54, subtitle, FAINT)


def _panel(network: Network, plan: MulticastPlan, number: int, outline: Sequence[OutlineLine]) -> Iterator[str]:
    """Yield the SVG elements of one tree, its title first."""
    rate, color = plan.rates[number], COLORS[number % len(COLORS)]
    share = rate / plan.rate
    thickness = THINNEST + (THICKEST - THINNEST) * share
    yield _text(14, 26, f"Tree {number + 1} · {rate:.4g} ({share:.1%})", BOLD)
    for place, line in enumerate(outline):
        if line.parent is not None:
            (x, y), (parent_x, parent_y) = _dot(line, place), _dot(outline[line.parent], line.parent)
            yield (
                f'<path class="edge" stroke="{color}" stroke-width="{thickness:.1f}" '
                f'd="M{parent_x:.1f} {parent_y:.1f}V{y:.1f}H{x:.1f}"/>'
            )
    for place, line in enumerate(outline):
        x, y = _dot(line, place)
        relays = _relays(network, line.host)
        kind, size = (f'class="relay" stroke="{color}"', 4.0) if relays else (f'fill="{color}"', 4.6)
        name = _shortened(network.hosts[line.host])
        yield f'<circle {kind} cx="{x:.1f}" cy="{y:.1f}" r="{size}"/>'
        yield _text(x + 10, y + 4, name, BOLD if line.parent is None else FAINT if relays else PLAIN)


def _outline(root: int, tree: Tree) -> list[OutlineLine]:
    """Return the hosts in the order of the outline: each one above the hosts that it sends to."""
    below = children(tree)
    order: list[OutlineLine] = []
    waiting: list[tuple[int, int, int | None]] = [(root, 0, None)]
    while waiting:
        line = OutlineLine(*waiting.pop())
        waiting += [(child, line.depth + 1, len(order)) for child in reversed(below.get(line.host, []))]
        order.append(line)
    return order


def _width(network: Network, outline: Sequence[OutlineLine]) -> float:
    longest = max(line.depth * INDENT + len(_shortened(network.hosts[line.host])) * CHARACTER for line in outline)
    return max(186.0, longest + 46)


def _relays(network: Network, host: int) -> bool:
    return host != network.root and host not in network.receivers


def _dot(line: OutlineLine, place: int) -> tuple[float, float]:
    return 20 + line.depth * INDENT, HEAD + place * LINE


def _shortened(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def _text(x: float, y: float, text: str, style: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(text)}</text>'
