"""Points, boxes and fibers of a drawn fabric."""

from __future__ import annotations

from dataclasses import dataclass


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
        """The center."""
        return Point(self.x + self.width / 2, self.y + self.height / 2)


@dataclass(frozen=True, slots=True)
class Fiber:
    """From an element's edge (`near`) to an edge of an optical switch (`far`), where it has to by corners (`bends`)."""

    near: Point
    far: Point
    bends: tuple[Point, ...] = ()

    @property
    def last(self) -> Point:
        """Where its last part, the one that reaches the switch, begins."""
        return self.bends[-1] if self.bends else self.near
