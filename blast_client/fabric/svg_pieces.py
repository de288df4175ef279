"""SVG fragments for the picture of a fabric: fitted text, boxes, crosses."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from blast_base.drawing.geometry import Box, Point

CHARACTER = 0.6
"""Width of a character relative to the font size, rounded up."""
_SMALLEST_FONT = 8.0
"""Pixels; smaller text is unreadable, so it may overlap."""


class Label:
    """A text that was scaled and cut to a width."""

    def __init__(self, text: str, size: float) -> None:
        self.text = escape(text)
        self.attributes = f'font-size="{size:.3g}"'


def common_size(texts: Sequence[str], width: float, size: float) -> float:
    """Return the font size, at most `size`, at which the longest text fits, so that all texts of a row look alike."""
    longest = max((len(text) for text in texts), default=0)
    return min(size, max(width / (max(longest, 1) * CHARACTER), _SMALLEST_FONT))


def fitted(text: str, width: float, size: float) -> Label:
    """Scale a text down, and then cut it, until it fits."""
    fitting = common_size([text], width, size)
    return Label(cut(text, width, fitting), fitting)


def cut(text: str, width: float, size: float) -> str:
    """Cut the end of a text that is too long."""
    room = _characters(width, size)
    return text if len(text) <= room else text[: room - 1] + "…"


def cut_in_front(text: str, width: float, size: float) -> str:
    """Cut the beginning of a text that is too long: numbered names differ at their end."""
    room = _characters(width, size)
    return text if len(text) <= room else "…" + text[1 - room :]


def _characters(width: float, size: float) -> int:
    # The constant compensates rounding for a text that was scaled to fit exactly.
    return max(int(width / (size * CHARACTER) + 1e-6), 2)


def centerd(label: Label, x: float, y: float, weight: str = "400", kind: str = "") -> str:
    """Return a text that is centered at a point."""
    of_kind = f'class="{kind}" ' if kind else ""
    return (
        f'<text {of_kind}x="{x:.1f}" y="{y:.1f}" {label.attributes} font-weight="{weight}" text-anchor="middle" '
        f'dy="0.35em">{label.text}</text>'
    )


def rectangle(kind: str, box: Box, radius: float, more: str = "") -> str:
    """Return a box with round corners."""
    return (
        f'<rect class="{kind}" x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" '
        f'rx="{radius:g}"{more}/>'
    )


def cross(at: Point, arm: float = 5.5) -> str:
    """Return the mark of an unusable element."""
    x, y = at.x, at.y
    return (
        f'<path class="bad" d="M{x - arm:.1f} {y - arm:.1f}l{2 * arm:g} {2 * arm:g}m0 {-2 * arm:g}'
        f'l{-2 * arm:g} {2 * arm:g}"/>'
    )


def count(things: Sequence[object], name: str) -> str:
    """Return a number with a noun: 1 rack, 2 racks."""
    return f"{len(things)} {name}" + ("" if len(things) == 1 else "s")
