"""Claim: a request on an idle lab is granted in p50 <= 18 ms with the optical switch of the paper (14.172 ms).

Eight racks, two splitters 1:4, each request to a different cold group of 3 to 8 racks. Trees stay lit after
their transfer, as the controller does by default: ports and splitters change hands between groups. Run as root:

    .venv/bin/python benchmarks/request_latency.py --requests 200
"""

from __future__ import annotations

import argparse
import json

import machine

from blast_client import Client
from mininet_topos.demo import latency
from mininet_topos.demo.results import Results
from mininet_topos.demo.stage import Stage
from mininet_topos.lab import Lab
from mininet_topos.plan import preset


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    plan = preset("small")
    with Lab(plan, keep_warm_ms=latency.KEEP_WARM_MS) as lab, Client(lab.thrift) as client:
        stage = Stage(lab, client, Results(plan.summary))
        stage.wait_devices()
        if args.json:
            latency.measure(stage, args.requests)
            print(
                json.dumps({"machine": machine.describe(), "latency_ms": stage.results.latencies.to_json()}, indent=2)
            )
        else:
            print(machine.describe())
            print(plan.summary)
            latency.play(stage, args.requests)


if __name__ == "__main__":
    main()
