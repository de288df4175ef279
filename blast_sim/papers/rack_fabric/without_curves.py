"""Mechanisms that the paper describes and draws no curve of: zero-load delays (5.3), errors (2.1), section 6."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blast_sim.base.report import Row
from blast_sim.papers.rack_fabric.models import LOCAL, REMOTE, SOURCE, flow, model
from blast_sim.papers.rack_fabric.panel import Axis, Panel, PanelCase, Point

LATENCIES = {512: (1.88, 0.143), 1522: (2.1, 0.35), 9022: (3.6, 1.9)}
"""The paper's, µs, by frame size: to a remote and to a local destination."""
COALESCED = (1, 6, 12)
PRIORITIES = (1, 3, 9)
CROSSBAR_WEIGHTS = (1, 25, 50, 75, 99)
ERRORS = (0.0, 0.001, 0.01, 0.05)
NEIGHBORS = tuple(f"n{number}" for number in range(1, 5))


def _latencies(seed: int) -> Iterator[PanelCase]:
    for size in LATENCIES:
        flows = [
            flow("remote", (0, 0), ((1, 0),), frame_bytes=size, rate_gbps=1.0),
            flow("local", (2, 0), ((2, 1),), frame_bytes=size, rate_gbps=1.0),
        ]
        yield PanelCase("", size, model(f"zero load: {size} B", seed, 1, flows))


def _delays(case: PanelCase, results: Row) -> Iterator[Point]:
    for one in results["flows"]:
        yield one["name"], case.x, one["destinations"][0]["mean_delay_ns"] / 1000


def _coalescing(seed: int) -> Iterator[PanelCase]:
    for packets in COALESCED:
        flows = [flow("m", SOURCE, (*LOCAL, *REMOTE), frame_bytes=512)]
        settings = {"arbiter": {"coalesce_packets": packets}, "warmup_ns": 200_000}
        yield PanelCase("", packets, model(f"coalescing: {packets} packets", seed, 1, flows, **settings))


def _messages(case: PanelCase, results: Row) -> Iterator[Point]:
    received = [one["gbps"] for one in results["flows"][0]["destinations"]]
    offered = results["flows"][0]["offered_frames"] * len(received)
    yield "messages a copy", case.x, results["counters"]["messages"] / offered
    yield "throughput", case.x, min(received)


def _priorities(seed: int) -> Iterator[PanelCase]:
    for weight in PRIORITIES:
        flows = [flow("first", (1, 0), (LOCAL[0],)), flow("second", (2, 0), (LOCAL[0],), **{"class": 1})]
        settings = {"classes": [{"weight": 1}, {"weight": weight}], "warmup_ns": 500_000}
        yield PanelCase("", weight, model(f"priorities 1 : {weight}", seed, 2, flows, **settings))


def _by_flow(case: PanelCase, results: Row) -> Iterator[Point]:
    for one in results["flows"]:
        received = [destination["gbps"] for destination in one["destinations"]]
        yield one["name"], case.x, sum(received) / len(received)


def _beside_neighbors(
    seed: int,
    local_links: bool,
    weights: Sequence[int] = CROSSBAR_WEIGHTS,
    to: Sequence[tuple[int, int]] = (*LOCAL, *REMOTE),
) -> Iterator[PanelCase]:
    """Yield a case per weight: a multicast from one port, and unicast at full speed from four others of its leaf.

    Each unicast flow goes to another leaf.
    """
    neighbors = [flow(name, (0, 1 + number), ((5 + number, 0),)) for number, name in enumerate(NEIGHBORS)]
    for weight in weights:
        flows = [flow("multicast", SOURCE, to), *neighbors]
        crossbar = {"local_links": local_links, "multicast_weight": weight}
        settings: dict[str, object] = {"crossbar": crossbar, "warmup_ns": 200_000}
        yield PanelCase("", weight, model(f"crossbar {crossbar}", seed, 1, flows, **settings))


def _neighbors(case: PanelCase, results: Row) -> Iterator[Point]:
    found = {name: gbps for name, _, gbps in _by_flow(case, results)}
    yield "multicast", case.x, found["multicast"]
    yield "unicast of neighbors", case.x, sum(found[name] for name in NEIGHBORS) / len(NEIGHBORS)


def _errors(seed: int) -> Iterator[PanelCase]:
    for probability in ERRORS:
        flows = [flow("m", SOURCE, (*LOCAL, *REMOTE), rate_gbps=20.0, stop_ns=1_000_000)]
        settings = {"errors": {"probability": probability}}
        yield PanelCase("", probability, model(f"errors {probability}", seed, 1.5, flows, **settings))


def _arrived(case: PanelCase, results: Row) -> Iterator[Point]:
    one = results["flows"][0]
    yield "copies that arrive", case.x, sum(to["copies"] for to in one["destinations"])
    yield "copies that were sent", case.x, one["offered_frames"] * len(one["destinations"])
    yield "sent again", case.x, results["counters"]["retransmitted"]


_GBPS = Axis("gbps", "throughput, Gb/s")
_WEIGHT = Axis("multicast_weight", "percent of an input that copies may take")

EXPERIMENTS = (
    Panel(
        "5.3-latency",
        "Unicast frames without load",
        Axis("frame_bytes", "frame, bytes"),
        Axis("us", "delay, µs"),
        lambda seed: list(_latencies(seed)),
        _delays,
    ),
    Panel(
        "2.1-errors",
        "Damaged copies are sent again on their output",
        Axis("probability", "of a damaged copy"),
        Axis("copies", "copies"),
        lambda seed: list(_errors(seed)),
        _arrived,
    ),
    Panel(
        "6-coalescing",
        "Requests and grants that share a message",
        Axis("coalesce_packets", "packets that a request waits for"),
        Axis("value", "messages a copy; Gb/s"),
        lambda seed: list(_coalescing(seed)),
        _messages,
    ),
    Panel(
        "6-priorities",
        "Two classes at one egress port",
        Axis("weight", "weight of the second"),
        _GBPS,
        lambda seed: list(_priorities(seed)),
        _by_flow,
    ),
    Panel(
        "6-crossbar-weight",
        "Copies at the crossbar inputs of neighbors",
        _WEIGHT,
        _GBPS,
        lambda seed: list(_beside_neighbors(seed, False)),
        _neighbors,
    ),
    Panel(
        "6-local-links",
        "The same, local copies over links of their own",
        _WEIGHT,
        _GBPS,
        lambda seed: list(_beside_neighbors(seed, True)),
        _neighbors,
    ),
    Panel(
        "6-remote-only",
        "The same without local copies",
        _WEIGHT,
        _GBPS,
        lambda seed: list(_beside_neighbors(seed, False, CROSSBAR_WEIGHTS[-1:], REMOTE)),
        _neighbors,
    ),
)
