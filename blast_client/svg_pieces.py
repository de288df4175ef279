"""Pieces that the picture of a fabric is put together from: text that fits, boxes, crosses."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from blast_client.fabric_geometry import Box, Point

CHARACTER = 0.6
"""Width of a character relative to the font's size, a little on the safe side."""
_SMALLEST_FONT = 8.0


class Label:
    """Text cut and scaled to a width."""

    def __init__(self, text: str, size: float) -> None:
        self.text = escape(text)
        self.attributes = f'font-size="{size:.3g}"'


def common_size(texts: Sequence[str], width: float, size: float) -> float:
    """The font size, at most `size`, at which the longest of these texts has room; what stands in a row looks alike."""
    longest = max((len(text) for text in texts), default=0)
    return min(size, max(width / (max(longest, 1) * CHARACTER), _SMALLEST_FONT))


def fitted(text: str, width: float, size: float) -> Label:
    """Text made smaller, and then cut, until it has room."""
    fitting = common_size([text], width, size)
    return Label(cut(text, width, fitting), fitting)


def cut(text: str, width: float, size: float) -> str:
    """The beginning of a text that is too long."""
    room = _characters(width, size)
    return text if len(text) <= room else text[: room - 1] + "…"


def cut_in_front(text: str, width: float, size: float) -> str:
    """The end of a text that is too long: names that are counted up differ there."""
    room = _characters(width, size)
    return text if len(text) <= room else "…" + text[1 - room :]


def _characters(width: float, size: float) -> int:
    # What was made to fit exactly must still fit after rounding.
    return max(int(width / (size * CHARACTER) + 1e-6), 2)


def centerd(label: Label, x: float, y: float, weight: str = "400", kind: str = "") -> str:
    """Text around a point."""
    of_kind = f'class="{kind}" ' if kind else ""
    return (
        f'<text {of_kind}x="{x:.1f}" y="{y:.1f}" {label.attributes} font-weight="{weight}" text-anchor="middle" '
        f'dy="0.35em">{label.text}</text>'
    )


def rectangle(kind: str, box: Box, radius: float, more: str = "") -> str:
    """A box with round corners."""
    return (
        f'<rect class="{kind}" x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" '
        f'rx="{radius:g}"{more}/>'
    )


def cross(at: Point, arm: float = 5.5) -> str:
    """What marks something that cannot be used."""
    x, y = at.x, at.y
    return (
        f'<path class="bad" d="M{x - arm:.1f} {y - arm:.1f}l{2 * arm:g} {2 * arm:g}m0 {-2 * arm:g}'
        f'l{-2 * arm:g} {2 * arm:g}"/>'
    )


def count(things: Sequence[object], name: str) -> str:
    """How many, in words: 1 rack, 2 racks."""
    return f"{len(things)} {name}" + ("" if len(things) == 1 else "s")
