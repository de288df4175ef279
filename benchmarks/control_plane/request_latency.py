"""Claim: warm trees do not delay a cold request, and a returning group finds its tree lit.

A request on an idle lab is granted in p50 <= 18 ms with the paper's OCS (14.172 ms), also with warm trees as by
default. Three loads, each with trees torn down after their transfer, warm without a reserve, and warm by default:

    cold       each request to a different group of 4 to 8 racks; 8 racks, two splitters 1:4
    iterative  one group of 4 racks repeatedly, from its third request on; the same lab
    mix        three jobs of 3 racks submit 70 % of the requests, one-shot groups of 3 racks the rest;
               12 racks, four splitters 1:4

The three settings alternate on one lab, each with its own groups. The output has milliseconds from request to grant,
the ratio of the median to that with torn-down trees, and the share of requests that found their tree lit. Run as root:

    .venv/bin/python benchmarks/control_plane/request_latency.py --requests 200
"""

from __future__ import annotations

import os
import re
import signal
import statistics
from collections.abc import Mapping
from typing import Any

from benchmarks import machine
from benchmarks.control_plane.latency_loads import ROOMS, Asked, Rounds, draw, max_requests
from benchmarks.transfers.bed import script
from blast_api.ttypes import FabricStatus
from blast_client import Client
from blast_controller.configuration.config import ControllerSection
from mininet_topos.demo.latency import KEEP_WARM_MS, UdpEndpoints, endpoints_of, one
from mininet_topos.demo.results import Latencies, Results
from mininet_topos.demo.stage import Stage
from mininet_topos.lab.lab import Lab
from mininet_topos.topology.switch_kinds import DEFAULT_KIND, KINDS

BAR_MS = 18.0
QUICK_REQUESTS = 20
SETTINGS = {
    "taken_down": (0, 0.0),
    "warm_without_reserve": (KEEP_WARM_MS, 0.0),
    "warm_by_default": (KEEP_WARM_MS, ControllerSection().warm_reserve),
}
"""The time for which an unused tree stays warm (ms), and the share of idle resources that stays dark."""


class Submitter:
    """Submits the requests of each setting in rounds, and collects the results."""

    def __init__(self, stage: Stage, endpoints: UdpEndpoints, requests: Mapping[str, Rounds]) -> None:
        self._stage, self._endpoints, self._requests = stage, endpoints, requests
        self._latencies = {setting: dict[str, Latencies]() for setting in SETTINGS}
        self._found_lit = {setting: list[bool]() for setting in SETTINGS}

    def play_round(self, number: int) -> None:
        """Submit a round of every setting, each time starting with another setting. Raises DemoError."""
        settings = list(SETTINGS)
        for setting in settings[number % len(settings) :] + settings[: number % len(settings)]:
            self._configure(setting)
            for request in self._requests[setting][number]:
                self._submit(setting, request)
            self._stage.wait_dark()

    def figures(self, setting: str) -> dict[str, Any]:
        """Return latencies by kind of request, and the share that found their tree lit."""
        return {
            "total_ms": {kind: found.to_json()["total"] for kind, found in self._latencies[setting].items()},
            "optical_ms": {kind: found.to_json()["optical"] for kind, found in self._latencies[setting].items()},
            "found_lit": statistics.fmean(self._found_lit[setting]),
        }

    def _submit(self, setting: str, request: Asked) -> None:
        sample = one(self._stage, self._endpoints, *request.group)
        if request.counts:
            self._latencies[setting].setdefault(request.kind, Latencies()).add(sample)
            # A lit tree needs no command to any device.
            self._found_lit[setting].append(not sample["optical"])

    def _configure(self, setting: str) -> None:
        """Reload the configuration of the controller twice: the first reload tears down trees of other settings."""
        lab, (keep_warm_ms, reserve) = self._stage.lab, SETTINGS[setting]
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
    parser.add_argument("--requests", type=int, default=100, help="requests per load and setting (default: 100)")
    some = f"loads, separated by commas: {', '.join(ROOMS)} (default: all)"
    parser.add_argument("--loads", type=script.some_of(ROOMS), default=list(ROOMS), help=some)
    parser.add_argument("--driver", choices=KINDS, default=DEFAULT_KIND, help="driver of the OCS (default: tl1)")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_REQUESTS} requests")
    args = parser.parse_args()
    requests = QUICK_REQUESTS if args.quick else args.requests
    max_count = min(map(max_requests, args.loads))
    if not 1 <= requests <= max_count:
        parser.error(f"--requests must be between 1 and {max_count} for these loads")
    measured = {load: _measured(load, requests, args.driver) for load in args.loads}
    lines = []
    for load, found in measured.items():
        lines += [f"\n{load}: {ROOMS[load].summary}", *_table(found)]
    if "cold" in measured:
        p50 = measured["cold"]["warm_by_default"]["total_ms"]["cold"]["p50"]
        missed = "" if p50 <= BAR_MS else "  MISSED"
        lines.append(f"request to grant, cold, by default: p50 {p50:.3f} ms (bar {BAR_MS:g}{missed})")
    machine.show(args.json, {"loads": measured}, lines)


def _measured(load: str, requests: int, driver: str) -> dict[str, Any]:
    plan = ROOMS[load]
    drawn = {setting: draw(load, index, len(SETTINGS), requests) for index, setting in enumerate(SETTINGS)}
    with Lab(plan, switch=driver, keep_warm_ms=KEEP_WARM_MS) as lab, Client(lab.thrift) as client:
        stage = Stage(lab, client, Results(plan.summary))
        stage.wait_devices()
        with endpoints_of(stage) as endpoints:
            submitter = Submitter(stage, endpoints, drawn)
            for number in stage.progress(range(len(drawn["taken_down"])), f"rounds of {load}"):
                submitter.play_round(number)
    return {setting: submitter.figures(setting) for setting in SETTINGS}


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
