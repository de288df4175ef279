"""The options of `blast lab replay`. Loaded at every start of `blast`, so it loads nothing that calculates."""

from __future__ import annotations

import argparse
from pathlib import Path

from blast_sim.base.options import new_parser, positive, telling, whole_number
from blast_sim.replay.options import register_trace

_REPLAY = """\
Replay the multicasts of a trace in a lab, scaled down, with the real controller, devices and data; needs root.

Racks are folded onto --racks (rack r becomes r mod N; groups that are then within one rack are dropped and counted),
bytes are divided by --scale and arrivals by --speed. Every transfer goes by light, and every copy is compared by hash.
Results have the format of `blast sim replay --json`. With --write-scaled the scaled trace is only written, and both
commands replay it with --volume maximum.
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
    replay = new_parser(commands, "replay", "a trace, scaled down, with real data", _REPLAY, _EXAMPLE)
    replay.add_argument("trace", metavar="TRACE", help="a file, or `sample`")
    replay.add_argument("--policy", metavar="NAME,NAME|all", default="srpt-lease", help="(default: srpt-lease)")
    replay.add_argument("--json", action="store_true", help="print JSON, with the completion of every multicast")
    replay.add_argument("--figure", metavar="DIR", type=Path, help="draw mean and tail by policy there, and a CSV")
    register_trace(replay.add_argument_group("the trace"))
    _register_scaling(replay.add_argument_group("the scaling"))
    _register_lab(replay.add_argument_group("the lab"))
    replay.set_defaults(run=_replay)


def _register_scaling(scaling: argparse._ArgumentGroup) -> None:
    scaling.add_argument("--racks", metavar="N", type=whole_number(2, 32), default=8, help="of the lab (default: 8)")
    scaling.add_argument(
        "--scale", metavar="S", type=positive, help="of bytes (default: that of the rate, 10 Gbit/s by --light-rate)"
    )
    scaling.add_argument("--speed", metavar="F", type=positive, default=1.0, help="of arrivals (default: 1)")
    scaling.add_argument("--write-scaled", metavar="FILE", type=Path, help="write the scaled trace, and play nothing")


def _register_lab(lab: argparse._ArgumentGroup) -> None:
    lab.add_argument("--splitters", metavar="WAYSxCOUNT,…", default="4x2", help="(default: 4x2)")
    lab.add_argument("--light-rate", metavar="MBPS", type=positive, default=40.0, help="of an optical port (40)")
    lab.add_argument(
        "--pause", action=argparse.BooleanOptionalAction, default=True, help="senders may pause (default: they may)"
    )
    lab.add_argument(
        "--split", action=argparse.BooleanOptionalAction, default=True, help="requests may be served in parts (default)"
    )


@telling
def _replay(arguments: argparse.Namespace) -> int:
    from mininet_topos.replay.command import run

    return run(arguments)
