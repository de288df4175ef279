"""Claim: a request on an idle lab is granted in p50 <= 18 ms with the optical switch of the paper (14.172 ms).

Eight racks, two splitters 1:4, each request to a different cold group of 3 to 8 racks. Measured twice: with trees
taken down when their transfer is done, and with trees kept warm as the controller does by default, where ports and
splitters change hands between groups within the request. Run as root:

    .venv/bin/python benchmarks/request_latency.py --requests 200
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import machine

from blast_client import Client
from mininet_topos.demo import latency
from mininet_topos.demo.results import Results
from mininet_topos.demo.stage import Stage
from mininet_topos.lab import Lab
from mininet_topos.plan import preset

WAYS = {"taken_down": 0, "kept_warm": latency.KEEP_WARM_MS}
"""What becomes of a tree that is done, and for how long (ms)."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    measured = {name: _measured(keep_warm_ms, args) for name, keep_warm_ms in WAYS.items()}
    if args.json:
        print(json.dumps({"machine": machine.describe(), "latency_ms": measured}, indent=2))


def _measured(keep_warm_ms: int, args: argparse.Namespace) -> Any:
    plan = preset("small")
    with Lab(plan, keep_warm_ms=keep_warm_ms) as lab, Client(lab.thrift) as client:
        stage = Stage(lab, client, Results(plan.summary))
        stage.wait_devices()
        if args.json:
            latency.measure(stage, args.requests)
        else:
            print(f"{machine.describe()}\n{plan.summary}; trees are kept {keep_warm_ms / 1000:g} s when done")
            latency.play(stage, args.requests)
        return stage.results.latencies.to_json()


if __name__ == "__main__":
    main()
