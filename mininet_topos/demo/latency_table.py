"""Table II of the Blast paper with our measurements and their floor, as text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mininet_topos.demo.floor import MIRRORS_MS
from mininet_topos.demo.results import Latencies

PAPER_MS = {"thrift": 1.747, "compute": 8.553, "openflow": 8.711, "optical": 14.172}
"""The paper's Table II."""

PAPER_SUM_MS = sum(PAPER_MS.values())
"""33.183, as the paper prints it: the sum of the steps."""


@dataclass(frozen=True)
class _Row:
    """A row of the table: label, measured step, the paper's row, and the parts of the floor.

    `on_purpose` is the deliberate delay of the emulated switch in ms.
    """

    name: str
    step: str
    paper: str | None = None
    floor: tuple[str, ...] = ()
    on_purpose: float = 0.0


_ROWS = (
    _Row("Thrift call, last journal commit, hand-overs", "call_and_commit_after", "thrift", ("ping", "commit_after")),
    _Row("control algorithm", "compute", "compute"),
    _Row("first journal commit, hand-overs", "commit_before", None, ("commit_before",)),
    _Row("OpenFlow rules and barrier, slowest ToR", "openflow", "openflow", ("barrier",)),
    _Row("optical switch: TL1, and 14.172 of mirrors", "optical", "optical", ("tl1",), MIRRORS_MS),
)
_WIDTH = 46


def latency_table(seen: Latencies, floor: Latencies) -> Iterator[str]:
    """Yield the lines: medians and 99th percentiles of all requests, in milliseconds."""
    yield _line("milliseconds", "paper", "floor", "p50", "p99")
    for row in _ROWS:
        paper = PAPER_MS[row.paper] if row.paper else None
        yield _line(row.name, paper, _floor(row, floor), seen.percentile(row.step, 50), seen.percentile(row.step, 99))
    floors = sum(_floor(row, floor) or 0.0 for row in _ROWS)
    sums = sum(seen.percentile(row.step, 50) for row in _ROWS)
    yield _line("sum of the steps", PAPER_SUM_MS, floors, sums, None)
    for name, step, stated, minimum in (
        ("measured total, devices in parallel", "total", "< 25", floor.percentile("total", 50)),
        ("... until the first datagram at every receiver", "first_datagram", None, None),
    ):
        yield _line(name, stated, minimum, seen.percentile(step, 50), seen.percentile(step, 99))
    yield "floor: each operation measured alone after each request, on the same lab (p50): a Thrift ping"
    yield (
        f"{floor.percentile('ping', 50):.3f}, its commits {floor.percentile('commit_before', 50):.3f} and "
        f"{floor.percentile('commit_after', 50):.3f}, an OpenFlow barrier {floor.percentile('barrier', 50):.3f}, "
        f"a TL1 round trip {floor.percentile('tl1', 50):.3f}"
    )


def _floor(row: _Row, floor: Latencies) -> float | None:
    return sum(floor.percentile(part, 50) for part in row.floor) + row.on_purpose if row.floor else None


def _line(name: str, *cells: float | str | None) -> str:
    return f"{name:<{_WIDTH}}" + "".join(f"{_cell(cell):>9}" for cell in cells)


def _cell(value: float | str | None) -> str:
    return value if isinstance(value, str) else "-" if value is None else f"{value:.3f}"
