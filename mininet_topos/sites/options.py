"""The options of `blast lab sites`. `blast` imports this module at every start, so it imports no numeric libraries."""

from __future__ import annotations

import argparse
from pathlib import Path

from blast_sim.base.options import new_parser, positive, reporting_errors, whole_number

PRESETS = ("clusters", "figure2", "gridlab", "homogeneous")
UNITS = {"bit": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}

_SITES = """\
Build sites with unequal paths, each a network namespace on this machine with an agent. Needs root.

NETWORK.json has the format of `blast trees`: a rate for every path, and capacities of access links. Rates are
of application data. Without a file, --preset:

figure2      the example of the paper (den Burger, Kielmann, Bal: Balanced Multicasting, SC 2005), times 10 Mbit/s
gridlab      eight sites in Europe and the US with unequal rates of 5 to 100 Mbit/s
homogeneous  --hosts with the same rates
clusters     two or three --clusters of --nodes with 10 Mbit/s each and fast local networks, and wide-area links of 52
             and 45.6 Mbit/s that a cluster's hosts share: the paper's Figure 8, a tenth of everything

The sites stay until Ctrl-C, SIGTERM or the end of input, and are a lab: `blast lab down` removes them too.
"""
_EXAMPLE = """\
examples:
  blast lab sites network.json --unit mbit
  blast lab sites --preset clusters --clusters 3 --nodes 6
  blast lab sites --preset gridlab --show > network.json     # print the file for `blast trees`
  sleep infinity | blast lab sites --preset figure2 --json   # for scripts: one JSON line when all agents are ready
"""


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `sites` to `blast lab`."""
    sites = new_parser(commands, "sites", "build sites with unequal paths, with an agent in each", _SITES, _EXAMPLE)
    sites.add_argument(
        "file", metavar="NETWORK.json", nargs="?", type=Path, help="network file in the format of `blast trees`"
    )
    sites.add_argument(
        "--unit", choices=UNITS, default="bit", help="unit of the file's rates, per second (default: bit)"
    )
    sites.add_argument("--preset", choices=PRESETS, help="built-in network, instead of a file")
    sites.add_argument(
        "--hosts", metavar="N", type=whole_number(2, 64), default=8, help="hosts of homogeneous (default: 8)"
    )
    sites.add_argument("--rate", metavar="MBPS", type=positive, default=40.0, help="rate of homogeneous (default: 40)")
    sites.add_argument(
        "--clusters", metavar="N", type=whole_number(2, 3), default=2, help="number of clusters, 2 or 3 (default: 2)"
    )
    sites.add_argument(
        "--nodes", metavar="N", type=whole_number(1, 20), default=6, help="hosts per cluster (default: 6)"
    )
    sites.add_argument(
        "--one-way", metavar="MS", type=positive, help="one-way delay of every path, with a TCP window of 64 KiB"
    )
    sites.add_argument("--no-agents", action="store_true", help="sites without agents")
    output = sites.add_mutually_exclusive_group()
    output.add_argument("--show", action="store_true", help="print the network file of a preset and exit")
    output.add_argument("--json", action="store_true", help="one JSON line when all agents are ready")
    sites.set_defaults(run=_sites)


@reporting_errors
def _sites(arguments: argparse.Namespace) -> int:
    from mininet_topos.sites.command import run

    return run(arguments, UNITS[arguments.unit])
