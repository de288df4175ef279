"""`blast measure`: capacities of the network between hosts, as a file for `blast trees`."""

from __future__ import annotations

import argparse
from pathlib import Path

from blast_base.command_line import checked
from blast_client.cli.failures import report_failures
from blast_client.cli.options import add_command
from blast_client.cli.units import parse_bytes, parse_seconds
from blast_client.send.command import add_agents
from blast_client.send.receivers import Receiver, parse_receivers

_DESCRIPTION = """\
Measure the capacity of each link between hosts, and of each access link, for `blast trees`.

The agents of the hosts (`blast agent`) send short bursts over real connections; a host takes part in one burst at a
time. They measure every link, then the access link of each host in both directions. This host is the root, and needs
no agent, unless --root names another host. Measure without other traffic: it reduces the rates.
"""
_EXAMPLES = """\
examples:
  blast measure --hosts h2=10.0.2.1,h3=10.0.3.1 --secret-file /etc/blast/secret --output network.json
  blast measure --hosts h2,h3,h4 --root h2 --streams 4 --json | blast trees -
  blast measure --hosts h2,h3 --topology --controller 10.0.0.1:9090
  blast measure --hosts h2,h3 --monitor '/usr/local/bin/delphoi --json'

Exit status: 0 every link was measured, 3 some links are dead (rate 0), 1 no link carries data, 2 wrong use, 130 stopped
by Ctrl-C (143 by SIGTERM): the measurement stops and no file is written.
"""

MIN_SECONDS, MAX_SECONDS = 0.01, 10.0
MAX_STREAMS = 16
"""More connections measure the same rate, and take more of others."""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `measure` to `blast`."""
    parser = add_command(subparsers, "measure", "measure the capacities between hosts", "")
    parser.description, parser.epilog = _DESCRIPTION, _EXAMPLES
    parser.add_argument(
        "--hosts",
        metavar="HOST,…",
        type=checked(_hosts),
        required=True,
        help="hosts: HOST, HOST:PORT or HOST=ADDRESS:PORT",
    )
    parser.add_argument("--root", metavar="HOST", help="host that sends (default: the name of this host)")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="network file to write")
    size = parser.add_argument_group("Measurement")
    size.add_argument(
        "--bytes", metavar="SIZE", type=checked(parse_bytes), default=8 << 20, help="size of a burst (default: 8 MiB)"
    )
    size.add_argument(
        "--seconds", metavar="TIME", type=checked(_seconds), default=0.5, help="maximum time of a burst (default: 0.5s)"
    )
    size.add_argument(
        "--streams",
        metavar="N",
        type=checked(_streams),
        default=1,
        help="connections of a second burst on each link; the faster one counts (default: 1, no second burst)",
    )
    _add_others(parser)
    add_agents(parser)
    parser.set_defaults(run=_run)


def _add_others(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("Other sources", "Capacities without measurement; hosts need no agents.")
    others = group.add_mutually_exclusive_group()
    others.add_argument(
        "--topology", action="store_true", help="rates of access links and uplinks in the controller's configuration"
    )
    others.add_argument("--monitor", metavar="COMMAND", help="program that reads hosts and writes a network")
    others.add_argument("--file", metavar="FILE", type=Path, help="network file, to validate and print")


@report_failures
def _run(arguments: argparse.Namespace) -> int:
    # Importing the data plane takes longer than the help does.
    from blast_client.capacities.job import run_measure

    return run_measure(arguments)


def _hosts(text: str) -> list[Receiver]:
    """Parse hosts. Raises ValueError."""
    return parse_receivers([text])


def _seconds(text: str) -> float:
    """Parse the time of a burst. Raises ValueError."""
    seconds = parse_seconds(text)
    if not MIN_SECONDS <= seconds <= MAX_SECONDS:
        raise ValueError(f"{text} is out of range: a burst lasts {MIN_SECONDS:g} to {MAX_SECONDS:g} s")
    return seconds


def _streams(text: str) -> int:
    """Parse a number of connections. Raises ValueError."""
    if not text.isdecimal() or not 1 <= int(text) <= MAX_STREAMS:
        raise ValueError(f"{text} is out of range: a burst uses 1 to {MAX_STREAMS} connections")
    return int(text)
