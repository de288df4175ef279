"""A panel of a figure: its simulations, and the points of its lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from blast_sim.base.report import Row
from blast_sim.fabric.scenario import Model

Point = tuple[str, float, float]
"""The line, x and y."""

Lines = Mapping[str, Sequence[tuple[float, float]]]
"""Points (x, y) of each line, in the order in which they were given."""


@dataclass(frozen=True, slots=True)
class PanelCase:
    """One run. `line` and `x` are for those panels in which a run is a point of a line."""

    line: str
    x: float
    model: Model


@dataclass(frozen=True, slots=True)
class Axis:
    """`column` is its name in a CSV file, with the unit; `label` is for people."""

    column: str
    label: str
    scale: str = "linear"


@dataclass(frozen=True, slots=True)
class Mark:
    """A number that the paper's text states, at this y; from x to x where it holds for a part only."""

    y: float
    words: str
    span: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Panel:
    """`cases` take a seed. `points` are those of a run in which it is what it was for.

    With `facets` there is an axes for each of them, with the lines whose names begin with it.
    """

    name: str
    title: str
    x: Axis
    y: Axis
    cases: Callable[[int], Sequence[PanelCase]]
    points: Callable[[PanelCase, Row], Iterable[Point]]
    marks: Sequence[Mark] = ()
    facets: Sequence[str] = ()

    def lines(self, cases: Sequence[PanelCase], results: Iterable[Row]) -> Lines:
        """Return the lines of all cases together."""
        found: dict[str, list[tuple[float, float]]] = {}
        for case, result in zip(cases, results, strict=True):
            for line, x, y in self.points(case, result):
                found.setdefault(line, []).append((x, y))
        return found

    def rows(self, lines: Lines) -> list[Row]:
        """Return a row for each point."""
        return [{"line": line, self.x.column: x, self.y.column: y} for line, points in lines.items() for x, y in points]


def mean_throughput(case: PanelCase, results: Row) -> Iterator[Point]:
    """Yield the mean rate of the first flow's destinations, Gb/s, as a point of the case's line."""
    received = [one["gbps"] for one in results["flows"][0]["destinations"]]
    yield case.line, case.x, sum(received) / len(received)


def throughput_over_time(names: Mapping[str, Sequence[str]]) -> Callable[[PanelCase, Row], Iterator[Point]]:
    """Return a function for rates of destinations by time in ms: a line for each destination of each named flow."""

    def points(case: PanelCase, results: Row) -> Iterator[Point]:
        milliseconds = results["series"]["sample_ns"] / 1e6
        for flow in results["flows"]:
            for name, destination in zip(names.get(flow["name"], ()), flow["destinations"], strict=False):
                for number, gbps in enumerate(destination["series_gbps"]):
                    yield name, round((number + 0.5) * milliseconds, 6), gbps

    return points


def between(points: Sequence[tuple[float, float]], low: float, high: float) -> float:
    """Return the mean y of the points whose x lies between these bounds."""
    chosen = [y for x, y in points if low <= x <= high]
    return sum(chosen) / len(chosen)
