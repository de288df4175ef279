"""Claims: an optical transfer of a file to seven racks reaches >= 0.9 of the optical rate.

It sends <= 1.05 copies on the sender's uplink and <= 1 % of the file through the packet core. Naive unicast is within
5 % of the limit of the access link.

As root:

    .venv/bin/python benchmarks/transfers/light_transfer.py --megabytes 20 --iterations 5
"""

from __future__ import annotations

import argparse
import os

from benchmarks import machine
from blast_client import Client
from mininet_topos.demo import iterations
from mininet_topos.demo.receivers import Receivers
from mininet_topos.demo.results import Results
from mininet_topos.demo.stage import Stage
from mininet_topos.lab.lab import Lab
from mininet_topos.topology.plan import preset


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=8, help="size of the file in MB (default: 8)")
    parser.add_argument("--iterations", type=int, default=5, help="number of transfers (default: 5)")
    args = parser.parse_args()
    plan = preset("small")
    print(machine.describe())
    print(plan.summary)
    with Lab(plan) as lab, Client(lab.thrift) as client:
        stage = Stage(lab, client, Results(plan.summary))
        stage.wait_devices()
        path = lab.directory / "random.data"
        path.write_bytes(os.urandom(args.megabytes * 1_000_000))
        with Receivers(stage, stage.first_hosts()) as receivers:
            iterations.play(stage, receivers, path, args.iterations)


if __name__ == "__main__":
    main()
