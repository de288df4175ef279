"""Figure 5: which copies find a header when a pool of headers is short (section 4.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from blast_sim.base.report import Row
from blast_sim.papers.rack_fabric.models import LOCAL, REMOTE, SOURCE, flow, model
from blast_sim.papers.rack_fabric.panel import Axis, Mark, Panel, PanelCase, Point, throughput_over_time

HEADERS = 100
DESTINATIONS = (LOCAL[0], *REMOTE, (5, 0), (6, 0), (7, 0))
LINES = tuple(f"m{number}" for number in range(1, 9))
"""In the order in which headers arrive; m1 is the local one."""
IN_ORDER = {"high": HEADERS, "low": HEADERS}
RANDOM = {**IN_ORDER, "shuffle": True}
RED = {"high": HEADERS, "low": 70, "probability": 0.5}
TOO_LOW, TOO_HIGH = {**RED, "probability": 0.05}, {**RED, "probability": 0.95}
ALIKE_NS = 2850
"""Delay of a local ACK with which a local copy keeps its header as long as remote ones, 3500 ns."""
STATED = 120 * 12.5 / 35
"""The paper's estimate, Gb/s; it prints 42.6."""


def _run(headers: Mapping[str, object], **other: object) -> Callable[[int], Sequence[PanelCase]]:
    def cases(seed: int) -> Sequence[PanelCase]:
        settings = {"headers": headers, "voq": {"drop": "none"}, "sample_ns": 100_000, **other}
        return [PanelCase("", 0, model(f"5: {headers}", seed, 4, [flow("m", SOURCE, DESTINATIONS)], **settings))]

    return cases


def _mean_ack(case: PanelCase, results: Row) -> Iterator[Point]:
    del case
    yield "mean of all copies", 0, results["counters"]["mean_ack_ns"]
    yield "longest", 0, results["counters"]["longest_ack_ns"]


_TIME, _THROUGHPUT = Axis("ms", "time, ms"), Axis("gbps", "throughput of a subflow, Gb/s")
_OVER_TIME = throughput_over_time({"m": LINES})
_STATED = Mark(STATED, "expected by the paper: 42.9")

PANELS = (
    Panel(
        "5b",
        "100 headers, copies in fixed order",
        _TIME,
        _THROUGHPUT,
        _run(IN_ORDER),
        _OVER_TIME,
        [Mark(80, "the first: 80"), Mark(10, "the last: above 10"), _STATED],
    ),
    Panel("5c", "100 headers, copies in random order", _TIME, _THROUGHPUT, _run(RANDOM), _OVER_TIME, [_STATED]),
    Panel("5d", "RED between 70 and 100 headers, p = 0.5", _TIME, _THROUGHPUT, _run(RED), _OVER_TIME, [_STATED]),
)

EXPERIMENTS = (
    Panel("5d-low", "RED between 70 and 100 headers, p = 0.05", _TIME, _THROUGHPUT, _run(TOO_LOW), _OVER_TIME),
    Panel("5d-high", "RED between 70 and 100 headers, p = 0.95", _TIME, _THROUGHPUT, _run(TOO_HIGH), _OVER_TIME),
    Panel(
        "5c-alike",
        "100 headers, random order, local copies ACKed as late as remote ones",
        _TIME,
        _THROUGHPUT,
        _run(RANDOM, timing={"ack_local_ns": ALIKE_NS}),
        _OVER_TIME,
        [_STATED],
    ),
    Panel(
        "5-ack",
        "From the arrival of a frame to the ACKs of its copies",
        Axis("run", "run"),
        Axis("ns", "ns"),
        _run({}),
        _mean_ack,
    ),
    Panel(
        "5c-ack",
        "The same with 100 headers in random order",
        Axis("run", "run"),
        Axis("ns", "ns"),
        _run(RANDOM),
        _mean_ack,
    ),
)
