"""The options of `blast sim replay`. Loaded at every start of `blast`, so it loads nothing that calculates."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from blast_sim.base.options import FAILED, add_parquet, gbps, new_parser, seconds, telling, whole_number

_REPLAY = """\
Replay a trace at full size on the simulated network, with the project's own controller core and its policies.

TRACE is a file, or one that comes with the program: `sample`, whose multicasts hardly meet, or `contended`, where they
wait for each other and the policies differ. What is seen is said below the table. Formats: coflow (coflow-benchmark),
philly (Microsoft's cluster_job_log), alibaba (pai_instance_table of 2020). What traces do not say is assumed by these
rules, which stand with the results:

  --rule job-broadcast  every coflow sends a file from one of its mapper racks (drawn by --seed) to all its other racks
  --rule one-to-many    coflows of one mapper and several reducers are multicasts, and only they
  --iterations N        every multicast comes N times, once a --period
  job tables            machines of a job in several racks are a group; racks are --machines-per-rack machines that are
                        neighbors by name, or spread by a hash (--placement)

With --shuffles each coflow's shuffle follows its broadcast and shares the racks' uplinks. Results repeat bit for bit
(unless --compute measured).
"""
_EXAMPLE = """\
examples:
  blast sim replay contended --policy all --volume maximum
  blast sim replay FB2010-1Hr-150-0.txt --policy paper,srpt-lease --splitters 20 --figure figures
  blast sim replay FB2010-1Hr-150-0.txt --shuffles --volume median --json > replay.json
  blast sim replay contended --policy all --parquet completions.parquet
  blast sim replay contended --policy paper,mine:NarrowestFirst
  blast sim replay cluster_job_log --format philly --first 1000
"""


def register_replay(kinds: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `replay` to `blast sim`."""
    replay = new_parser(kinds, "replay", "a trace, under the controller's policies", _REPLAY, _EXAMPLE)
    replay.add_argument("trace", metavar="TRACE", help="a file, `sample` or `contended`")
    replay.add_argument(
        "--policy", metavar="NAME,NAME|all", default="srpt-lease", help="or module:Class (default: srpt-lease)"
    )
    replay.add_argument("--json", action="store_true", help="print JSON, with the completion of every multicast")
    replay.add_argument("--figure", metavar="DIR", type=Path, help="draw mean, tail and distribution there, with CSV")
    add_parquet(replay, "a row for each multicast")
    replay.add_argument(
        "--processes", metavar="N", type=whole_number(1, 1024), default=os.cpu_count() or 1, help="(default: all cores)"
    )
    trace = replay.add_argument_group("the trace")
    register_trace(trace)
    trace.add_argument("--shuffles", action="store_true", help="with the coflows' shuffles on the packet network")
    _register_network(replay.add_argument_group("the network"))
    _register_light(replay.add_argument_group("the light"))
    replay.set_defaults(run=_replay)


MAY_BE_DENIED = ("pause", "split")
"""Options that are on unless the command says --no-."""


class _Refusing(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Raise ValueError, where a command would end."""
        raise ValueError(message)


def replay_arguments(trace: str, options: Mapping[str, object]) -> argparse.Namespace:
    """Return the arguments of the command that has these options, so that both accept the same values.

    Raises ValueError.
    """
    parser = _Refusing(add_help=False)
    kinds: argparse._SubParsersAction[argparse.ArgumentParser] = parser.add_subparsers(parser_class=_Refusing)
    register_replay(kinds)
    words = ["replay", "--json"]
    for name, value in options.items():
        flag = name.replace("_", "-")
        if value is False and name in MAY_BE_DENIED:
            words.append(f"--no-{flag}")
        elif value is True:
            words.append(f"--{flag}")
        elif value is not False and value is not None:
            words.append(f"--{flag}={value}")
    return parser.parse_args([*words, "--", trace])


def register_trace(trace: argparse._ArgumentGroup) -> None:
    """Add what `reading.workload_from` reads."""
    trace.add_argument("--format", choices=("coflow", "philly", "alibaba"), default="coflow", help="(default: coflow)")
    trace.add_argument(
        "--rule", choices=("job-broadcast", "one-to-many"), default="job-broadcast", help="(default: job-broadcast)"
    )
    trace.add_argument("--volume", metavar="MB|maximum|median", default="300", help="of a multicast; of its reducers")
    trace.add_argument("--seed", type=whole_number(0, 10**9 - 1), default=0, help="of the senders (default: 0)")
    trace.add_argument("--iterations", metavar="N", type=whole_number(1, 100_000), default=1, help="(default: 1)")
    trace.add_argument("--period", metavar="SECONDS", type=seconds, default=1.0, help="of an iteration (default: 1)")
    trace.add_argument("--first", metavar="N", type=whole_number(1, 10**9 - 1), help="only so many multicasts")
    trace.add_argument(
        "--machines-per-rack", metavar="N", type=whole_number(1, 100_000), default=40, help="default: 40"
    )
    trace.add_argument("--placement", choices=("sorted", "hash"), default="sorted", help="(default: sorted)")


def _register_network(network: argparse._ArgumentGroup) -> None:
    network.add_argument("--racks", type=whole_number(2, 100_000), help="(default: those of the trace)")
    network.add_argument("--servers-per-rack", metavar="N", type=whole_number(1, 1000), default=40, help="default: 40")
    network.add_argument("--server-gbps", metavar="G", type=gbps, default=10.0, help="(default: 10)")
    network.add_argument("--uplink-gbps", metavar="G", type=gbps, default=40.0, help="(default: 40)")
    network.add_argument(
        "--fallback",
        choices=("naive", "pipeline", "trees", "overlay", "hdfs"),
        default="naive",
        help="of requests that get no light (default: naive)",
    )


def _register_light(light: argparse._ArgumentGroup) -> None:
    light.add_argument(
        "--splitters", metavar="N", type=whole_number(0, 100_000), help="(default: a third of the racks)"
    )
    light.add_argument("--light-gbps", metavar="G", type=gbps, default=10.0, help="of an optical port (default: 10)")
    light.add_argument(
        "--fan-out", metavar="N", type=whole_number(2, 1024), default=4, help="of a splitter (default: 4)"
    )
    light.add_argument("--ports", metavar="N", type=whole_number(1, 64), default=1, help="of a rack (default: 1)")
    light.add_argument("--directional", action="store_true", help="a port may send to one group and receive of another")
    light.add_argument("--max-splitters-per-tree", metavar="K", type=whole_number(0, 100_000), help="the constraint 1")
    light.add_argument(
        "--switch", metavar="NAME", default="section-vi", help="whose delay (default: section-vi, 25 ms)"
    )
    light.add_argument(
        "--pending-timeout", metavar="SECONDS", type=seconds, help="then the fallback (default: for ever)"
    )
    light.add_argument(
        "--pause", action=argparse.BooleanOptionalAction, default=True, help="senders may pause (default: they may)"
    )
    light.add_argument(
        "--split", action=argparse.BooleanOptionalAction, default=True, help="requests may be served in parts (default)"
    )
    light.add_argument(
        "--compute", metavar="measured|recorded|MS", default="recorded", help="time of a decision (default: recorded)"
    )


@telling
def _replay(arguments: argparse.Namespace) -> int:
    from blast_sim.base.worker_processes import WorkerDied
    from blast_sim.replay.command import run

    try:
        return run(arguments)
    except WorkerDied as error:
        sys.stderr.write(f"blast: {error}\n")
        return FAILED
