"""The options of `blast sim replay`. `blast` imports this module at every start, so it imports no numeric libraries."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from blast_base.command_line import FAILED
from blast_sim.base.options import add_parquet, gbps, new_parser, reporting_errors, seconds, whole_number

_REPLAY = """\
Replay a trace at full size on a simulated network, with Blast's controller core and its policies.

TRACE is a file or a built-in trace: `sample`, whose multicasts rarely overlap, or `contended`, where they wait for each
other and the policies differ. A summary follows the table. Formats: coflow (coflow-benchmark), philly (Microsoft's
cluster_job_log), alibaba (pai_instance_table of 2020). Data missing from traces is derived by these rules, which the
results include:

  --rule job-broadcast  every coflow sends a file from a random mapper rack (--seed) to all its other racks
  --rule one-to-many    only coflows of one mapper and several reducers are multicasts
  --iterations N        every multicast repeats N times, once per --period
  job tables            a job with machines in several racks is a group; --machines-per-rack machines form a rack, by
                        sorted names or by a hash (--placement)

With --shuffles, each coflow's shuffle follows its broadcast and shares the racks' uplinks. Results are bit-for-bit
repeatable unless --compute is measured.
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
    replay = new_parser(kinds, "replay", "replay a trace under the controller's policies", _REPLAY, _EXAMPLE)
    replay.add_argument("trace", metavar="TRACE", help="trace file, `sample` or `contended`")
    replay.add_argument(
        "--policy",
        metavar="NAME,NAME|all",
        default="srpt-lease",
        help="policies, or module:Class (default: srpt-lease)",
    )
    replay.add_argument(
        "--processes",
        metavar="N",
        type=whole_number(1, 1024),
        default=os.cpu_count() or 1,
        help="number of worker processes (default: one per core)",
    )
    trace = replay.add_argument_group("Trace")
    register_trace(trace)
    trace.add_argument("--shuffles", action="store_true", help="simulate the coflows' shuffles on the packet network")
    _register_network(replay.add_argument_group("Network"))
    _register_light(replay.add_argument_group("Optical network"))
    output = replay.add_argument_group("Output")
    output.add_argument("--json", action="store_true", help="print JSON, with the completion of every multicast")
    output.add_argument("--figure", metavar="DIR", type=Path, help="folder for figures of mean, tail and distribution")
    add_parquet(output, "one row per multicast")
    replay.set_defaults(run=_replay)


MAY_BE_DENIED = ("pause", "split")
"""Options that are on by default and have a --no- form."""


class _Refusing(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Raise ValueError instead of exiting."""
        raise ValueError(message)


def replay_arguments(trace: str, options: Mapping[str, object]) -> argparse.Namespace:
    """Return the arguments of the command for these options, so that API and command accept the same values.

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
    """Add the options that `reading.workload_from` reads."""
    trace.add_argument(
        "--format", choices=("coflow", "philly", "alibaba"), default="coflow", help="trace format (default: coflow)"
    )
    trace.add_argument(
        "--rule",
        choices=("job-broadcast", "one-to-many"),
        default="job-broadcast",
        help="derivation of multicasts (default: job-broadcast)",
    )
    trace.add_argument(
        "--volume",
        metavar="MB|maximum|median",
        default="300",
        help="data per multicast, or statistic of its reducers (default: 300)",
    )
    trace.add_argument(
        "--seed", type=whole_number(0, 10**9 - 1), default=0, help="seed of the choice of senders (default: 0)"
    )
    trace.add_argument(
        "--iterations", metavar="N", type=whole_number(1, 100_000), default=1, help="repetitions (default: 1)"
    )
    trace.add_argument(
        "--period", metavar="SECONDS", type=seconds, default=1.0, help="interval of repetitions (default: 1)"
    )
    trace.add_argument(
        "--first", metavar="N", type=whole_number(1, 10**9 - 1), help="maximum number of multicasts (default: all)"
    )
    trace.add_argument(
        "--machines-per-rack",
        metavar="N",
        type=whole_number(1, 100_000),
        default=40,
        help="machines per rack (default: 40)",
    )
    trace.add_argument(
        "--placement", choices=("sorted", "hash"), default="sorted", help="machines to racks (default: sorted)"
    )


def _register_network(network: argparse._ArgumentGroup) -> None:
    network.add_argument("--racks", type=whole_number(2, 100_000), help="number of racks (default: racks of the trace)")
    network.add_argument("--servers-per-rack", metavar="N", type=whole_number(1, 1000), default=40, help="default: 40")
    network.add_argument("--server-gbps", metavar="G", type=gbps, default=10.0, help="rate per server (default: 10)")
    network.add_argument(
        "--uplink-gbps", metavar="G", type=gbps, default=40.0, help="rate of a rack's uplink (default: 40)"
    )
    network.add_argument(
        "--fallback",
        choices=("naive", "pipeline", "trees", "overlay", "hdfs"),
        default="naive",
        help="transport of requests without an optical grant (default: naive)",
    )


def _register_light(light: argparse._ArgumentGroup) -> None:
    light.add_argument(
        "--splitters",
        metavar="N",
        type=whole_number(0, 100_000),
        help="number of splitters (default: a third of the racks)",
    )
    light.add_argument(
        "--light-gbps", metavar="G", type=gbps, default=10.0, help="rate of an optical port (default: 10)"
    )
    light.add_argument(
        "--fan-out", metavar="N", type=whole_number(2, 1024), default=4, help="fan-out of a splitter (default: 4)"
    )
    light.add_argument(
        "--ports", metavar="N", type=whole_number(1, 64), default=1, help="optical ports per rack (default: 1)"
    )
    light.add_argument("--directional", action="store_true", help="separate ports for sending and receiving")
    light.add_argument(
        "--max-splitters-per-tree", metavar="K", type=whole_number(0, 100_000), help="maximum splitters per tree"
    )
    light.add_argument(
        "--switch",
        metavar="NAME",
        default="section-vi",
        help="optical switch, for its delay (default: section-vi, 25 ms)",
    )
    light.add_argument(
        "--pending-timeout", metavar="SECONDS", type=seconds, help="wait before the fallback (default: unlimited)"
    )
    light.add_argument(
        "--pause", action=argparse.BooleanOptionalAction, default=True, help="pause between leases (default: on)"
    )
    light.add_argument(
        "--split", action=argparse.BooleanOptionalAction, default=True, help="service in parts (default: on)"
    )
    light.add_argument(
        "--compute", metavar="measured|recorded|MS", default="recorded", help="time of a decision (default: recorded)"
    )


@reporting_errors
def _replay(arguments: argparse.Namespace) -> int:
    from blast_sim.base.worker_processes import WorkerDiedError
    from blast_sim.replay.command import run

    try:
        return run(arguments)
    except WorkerDiedError as error:
        sys.stderr.write(f"blast: {error}\n")
        return FAILED
