"""Claim: trees kept warm cost a cold request nothing, and a returning group finds its tree lit.

A request on an idle lab is granted in p50 <= 18 ms with the paper's optical switch (14.172 ms), also with trees kept
warm as by default. Three loads, each with trees torn down after their transfer, kept warm without a reserve, and kept
warm by default:

    cold       each request to a different group of 4 to 8 racks; 8 racks, two splitters 1:4
    iterative  one group of 4 racks again and again, from its third request on; the same lab
    mix        three jobs of 3 racks make 70 % of the requests, groups of 3 racks that do not return the rest;
               12 racks, four splitters 1:4

The three ways take turns on one lab, each with groups of its own. The output has milliseconds from request to grant,
the ratio of the medians to that of torn-down trees, and the share of requests that found their tree lit. Run as root:

    .venv/bin/python benchmarks/request_latency.py --requests 200
"""

from __future__ import annotations

import os
import re
import signal
import statistics
from collections.abc import Mapping
from typing import Any

import machine
from latency_loads import ROOMS, Asked, Turns, draw, max_requests
from transport_bed import script

from blast_api.ttypes import FabricStatus
from blast_client import Client
from blast_controller.configuration.config import ControllerSection
from mininet_topos.demo.latency import KEEP_WARM_MS, Endpoints, endpoints_of, one
from mininet_topos.demo.results import Latencies, Results
from mininet_topos.demo.stage import Stage
from mininet_topos.lab import Lab

BAR_MS = 18.0
QUICK_REQUESTS = 20
WAYS = {
    "taken_down": (0, 0.0),
    "warm_without_reserve": (KEEP_WARM_MS, 0.0),
    "warm_by_default": (KEEP_WARM_MS, ControllerSection().warm_reserve),
}
"""How long an unused tree is kept (ms), and the share of idle pieces that stays dark."""


class Taker:
    """Makes the requests of each way in turns, and collects the results."""

    def __init__(self, stage: Stage, endpoints: Endpoints, asked: Mapping[str, Turns]) -> None:
        self._stage, self._endpoints, self._asked = stage, endpoints, asked
        self._seen = {way: dict[str, Latencies]() for way in WAYS}
        self._found_lit = {way: list[bool]() for way in WAYS}

    def turn(self, place: int) -> None:
        """Play the next turn of every way, each time another way first. Raises DemoError."""
        ways = list(WAYS)
        for way in ways[place % len(ways) :] + ways[: place % len(ways)]:
            self._configure(way)
            for request in self._asked[way][place]:
                self._ask(way, request)
            self._stage.wait_dark()

    def figures(self, way: str) -> dict[str, Any]:
        """Return latencies by kind of request, and the share that found their tree lit."""
        return {
            "total_ms": {kind: seen.to_json()["total"] for kind, seen in self._seen[way].items()},
            "optical_ms": {kind: seen.to_json()["optical"] for kind, seen in self._seen[way].items()},
            "found_lit": statistics.fmean(self._found_lit[way]),
        }

    def _ask(self, way: str, request: Asked) -> None:
        sample = one(self._stage, self._endpoints, *request.group)
        if request.counts:
            self._seen[way].setdefault(request.kind, Latencies()).add(sample)
            # A lit tree needs no command to any device.
            self._found_lit[way].append(not sample["optical"])

    def _configure(self, way: str) -> None:
        """Reload the configuration of the controller, first so that trees of another way are torn down."""
        lab, (keep_warm_ms, reserve) = self._stage.lab, WAYS[way]
        for kept in (0, keep_warm_ms):
            text = re.sub(r"(?m)^warm_reserve = .*\n", "", lab.config.read_text())
            lines = f"keep_warm_ms = {kept}\nwarm_reserve = {1.0 if not kept else reserve}\n"
            lab.config.write_text(re.sub(r"(?m)^keep_warm_ms = .*\n", lines, text))
            assert lab.controller_pid is not None, "the lab was started with a controller"
            os.kill(lab.controller_pid, signal.SIGHUP)

            def is_configured(fabric: FabricStatus, kept: int = kept) -> bool:
                """Return whether a fabric without transfers shows the reserve of idle splitters."""
                if not kept or fabric.warm is None:
                    return not kept and fabric.warm is None
                return any(pieces.reserve for pieces in fabric.warm.resources) == (reserve > 0)

            self._stage.wait_for(is_configured, "a reload")


def main() -> None:
    """Measure and print."""
    parser = machine.parser(__doc__)
    parser.add_argument("--requests", type=int, default=100, help="of each load, each way (default: 100)")
    some = f"some of {', '.join(ROOMS)} (default: all)"
    parser.add_argument("--loads", type=script.some_of(ROOMS), default=list(ROOMS), help=some)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_REQUESTS} requests")
    args = parser.parse_args()
    requests = QUICK_REQUESTS if args.quick else args.requests
    most = min(map(max_requests, args.loads))
    if not 1 <= requests <= most:
        parser.error(f"--requests must be between 1 and {most} for these loads")
    measured = {load: _measured(load, requests) for load in args.loads}
    lines = []
    for load, found in measured.items():
        lines += [f"\n{load}: {ROOMS[load].summary}", *_table(found)]
    if "cold" in measured:
        p50 = measured["cold"]["warm_by_default"]["total_ms"]["cold"]["p50"]
        missed = "" if p50 <= BAR_MS else "  MISSED"
        lines.append(f"request to grant, cold, by default: p50 {p50:.3f} ms (bar {BAR_MS:g}{missed})")
    machine.show(args.json, {"loads": measured}, lines)


def _measured(load: str, requests: int) -> dict[str, Any]:
    plan = ROOMS[load]
    asked = {way: draw(load, place, len(WAYS), requests) for place, way in enumerate(WAYS)}
    with Lab(plan, keep_warm_ms=KEEP_WARM_MS) as lab, Client(lab.thrift) as client:
        stage = Stage(lab, client, Results(plan.summary))
        stage.wait_devices()
        with endpoints_of(stage) as endpoints:
            taker = Taker(stage, endpoints, asked)
            for place in stage.progress(range(len(asked["taken_down"])), f"turns of {load}"):
                taker.turn(place)
    return {way: taker.figures(way) for way in WAYS}


def _table(found: dict[str, Any]) -> list[str]:
    kinds = list(next(iter(found.values()))["total_ms"])
    base = {kind: found["taken_down"]["total_ms"][kind]["p50"] for kind in kinds}
    head = "".join(f"{f'{kind}: p50':>18}{'p99':>9}{'ratio':>8}" for kind in kinds)
    rows = [f"{'trees':<24}{head}{'found lit':>12}"]
    for way, figures in found.items():
        cells = (
            f"{figures['total_ms'][kind]['p50']:>18.3f}{figures['total_ms'][kind]['p99']:>9.3f}"
            f"{figures['total_ms'][kind]['p50'] / base[kind]:>8.2f}"
            for kind in kinds
        )
        rows.append(f"{way.replace('_', ' '):<24}{''.join(cells)}{figures['found_lit']:>12.1%}")
    return rows


if __name__ == "__main__":
    main()
