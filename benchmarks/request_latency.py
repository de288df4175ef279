"""Claim: trees kept warm cost a cold request nothing, and a group that comes back finds its light.

A request on an idle lab is granted in p50 <= 18 ms with the optical switch of the paper (14.172 ms), and so it is with
trees kept warm as the controller does by default, where lit trees give way before their pieces are needed. Three loads,
each with trees taken down when their transfer is done, kept warm without a reserve, and kept warm by default:

    cold       each request to a different group of 4 to 8 racks; 8 racks, two splitters 1:4
    iterative  one group of 4 racks again and again, from its third time on; the same lab
    mix        three jobs of 3 racks ask 70 % of the time, groups of 3 racks that do not come back the rest;
               12 racks, four splitters 1:4

The three ways take turns on one lab, so that each sees the machine equally busy; each has groups of its own. Told are
milliseconds from request to grant, the ratio of the medians to that of trees taken down, and the share of requests that
found their light. Run as root:

    .venv/bin/python benchmarks/request_latency.py --requests 200
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import machine
from latency_loads import ROOMS, draw, most_requests
from latency_ways import WAYS, Taker

from blast_client import Client
from mininet_topos.demo.latency import KEEP_WARM_MS, endpoints_of
from mininet_topos.demo.results import Results
from mininet_topos.demo.stage import Stage
from mininet_topos.lab import Lab

BAR_MS = 18.0
QUICK_REQUESTS = 20


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=100, help="of each load, each way (default 100)")
    parser.add_argument("--loads", default=",".join(ROOMS), help=f"some of {', '.join(ROOMS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_REQUESTS} requests")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    loads = args.loads.split(",")
    if unknown := set(loads) - set(ROOMS):
        parser.error(f"--loads: there is no {', '.join(sorted(unknown))}; choose among {', '.join(ROOMS)}")
    requests = QUICK_REQUESTS if args.quick else args.requests
    most = min(map(most_requests, loads))
    if not 1 <= requests <= most:
        parser.error(f"--requests must be between 1 and {most} for these loads")
    if not args.json:
        print(machine.describe())
    measured = {load: _measured(load, requests, args.json) for load in loads}
    if args.json:
        print(json.dumps({"machine": machine.describe(), "loads": measured}, indent=2))


def _measured(load: str, requests: int, silent: bool) -> dict[str, Any]:
    plan = ROOMS[load]
    asked = {way: draw(load, place, len(WAYS), requests) for place, way in enumerate(WAYS)}
    with Lab(plan, keep_warm_ms=KEEP_WARM_MS) as lab, Client(lab.thrift) as client:
        stage = Stage(lab, client, Results(plan.summary))
        stage.wait_devices()
        with endpoints_of(stage) as endpoints:
            taker = Taker(stage, endpoints, asked)
            for place in stage.progress(range(len(asked["taken_down"])), f"turns of {load}"):
                taker.turn(place)
    found = {way: taker.told(way) for way in WAYS}
    if not silent:
        print(f"\n{load}: {plan.summary}")
        print("\n".join(_table(found)))
    if load == "cold" and not silent:
        p50 = found["warm_by_default"]["total_ms"][load]["p50"]
        missed = "" if p50 <= BAR_MS else "  MISSED"
        print(f"request to grant, cold, by default: p50 {p50:.3f} ms (bar {BAR_MS:g}{missed})")
    return found


def _table(found: dict[str, Any]) -> list[str]:
    kinds = list(next(iter(found.values()))["total_ms"])
    base = {kind: found["taken_down"]["total_ms"][kind]["p50"] for kind in kinds}
    rows = [
        f"{'trees':<24}"
        + "".join(f"{f'{kind}: p50':>18}{'p99':>9}{'ratio':>8}" for kind in kinds)
        + f"{'found lit':>12}{'taken over':>12}{'gave way':>10}"
    ]
    for way, told in found.items():
        cells = (
            f"{told['total_ms'][kind]['p50']:>18.3f}{told['total_ms'][kind]['p99']:>9.3f}"
            f"{told['total_ms'][kind]['p50'] / base[kind]:>8.2f}"
            for kind in kinds
        )
        counts = f"{told['found_lit']:>12.1%}{told['taken_over']:>12}{told['gave_way']:>10}"
        rows.append(f"{way.replace('_', ' '):<24}{''.join(cells)}{counts}")
    return rows


if __name__ == "__main__":
    main()
