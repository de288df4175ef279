"""The options of `blast lab replay`. `blast` imports this module at every start, so it imports no numeric libraries."""

from __future__ import annotations

import argparse
from pathlib import Path

from blast_sim.base.options import new_parser, positive, reporting_errors, whole_number
from blast_sim.replay.options import register_trace

_REPLAY = """\
Replay the multicasts of a trace in a lab, scaled down, with the real controller, emulated devices and real data. Needs
root.

Racks are folded onto --racks (rack r becomes r mod N; groups that are then within one rack are dropped and counted),
bytes are divided by --scale and arrivals by --speed. Every transfer uses the optical network, and every copy is
compared by hash. Results have the format of `blast sim replay --json`. --write-scaled only writes the scaled trace,
which both commands replay with --volume maximum.
"""
_EXAMPLE = """\
examples:
  blast lab replay sample --first 24 --scale 100
  blast lab replay FB2010-1Hr-150-0.txt --first 50 --speed 4 --policy paper,srpt-lease --json > lab.json
  blast lab replay sample --first 24 --scale 100 --write-scaled scaled.txt
  blast lab replay scaled.txt --volume maximum --scale 1
  blast sim replay scaled.txt --volume maximum --splitters 2 --light-gbps 0.0389 --switch glimmerglass
"""


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `replay` to `blast lab`."""
    replay = new_parser(commands, "replay", "replay a scaled-down trace with real data", _REPLAY, _EXAMPLE)
    replay.add_argument("trace", metavar="TRACE", help="trace file, or `sample`")
    replay.add_argument(
        "--policy", metavar="NAME,NAME|all", default="srpt-lease", help="policies (default: srpt-lease)"
    )
    replay.add_argument("--json", action="store_true", help="print JSON, with the completion of every multicast")
    replay.add_argument("--figure", metavar="DIR", type=Path, help="folder for a figure of mean and tail by policy")
    register_trace(replay.add_argument_group("Trace"))
    _register_scaling(replay.add_argument_group("Scaling"))
    _register_lab(replay.add_argument_group("Lab"))
    replay.set_defaults(run=_replay)


def _register_scaling(scaling: argparse._ArgumentGroup) -> None:
    scaling.add_argument(
        "--racks", metavar="N", type=whole_number(2, 32), default=8, help="racks of the lab (default: 8)"
    )
    scaling.add_argument(
        "--scale", metavar="S", type=positive, help="divisor of bytes (default: 10 Gbit/s divided by --light-rate)"
    )
    scaling.add_argument(
        "--speed", metavar="F", type=positive, default=1.0, help="divisor of arrival times (default: 1)"
    )
    scaling.add_argument(
        "--write-scaled", metavar="FILE", type=Path, help="output file for the scaled trace, without a replay"
    )


def _register_lab(lab: argparse._ArgumentGroup) -> None:
    lab.add_argument("--splitters", metavar="WAYSxCOUNT,…", default="4x2", help="splitters (default: 4x2)")
    lab.add_argument(
        "--light-rate", metavar="MBPS", type=positive, default=40.0, help="rate of an optical port (default: 40)"
    )
    lab.add_argument(
        "--pause", action=argparse.BooleanOptionalAction, default=True, help="pause between leases (default: on)"
    )
    lab.add_argument(
        "--split", action=argparse.BooleanOptionalAction, default=True, help="service in parts (default: on)"
    )


@reporting_errors
def _replay(arguments: argparse.Namespace) -> int:
    from mininet_topos.replay.command import run

    return run(arguments)
