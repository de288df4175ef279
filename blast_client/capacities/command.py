"""`blast measure`: what the network between hosts carries, as a file that `blast trees` reads."""

from __future__ import annotations

import argparse
from pathlib import Path

from blast_client.failures import telling_failures
from blast_client.options import add_command, checked
from blast_client.receivers import Receiver, parse_receivers
from blast_client.send_command import add_agents
from blast_client.units import parse_bytes, parse_seconds

_DESCRIPTION = """\
Find what each host can send to each other one, and all of them together, for `blast trees`.

The agents of the hosts (`blast agent`) measure it: short bursts over real connections, of which no host takes part in
two at once. First every link, then all that a host sends, and all that it takes. This host is the root, and needs no
agent, unless --root names one of the others. What is wanted are moments without other traffic: what else is sent
meanwhile is missing from the rates.
"""
_EXAMPLES = """\
examples:
  blast measure --hosts h2=10.0.2.1,h3=10.0.3.1 --secret-file /etc/blast/secret --output network.json
  blast measure --hosts h2,h3,h4 --root h2 --streams 4 --json | blast trees -
  blast measure --hosts h2,h3 --topology --controller 10.0.0.1:9090
  blast measure --hosts h2,h3 --monitor '/usr/local/bin/delphoi --json'

Exit status: 0 every link was measured, 3 some are dead (rate 0), 1 none is of use, 2 wrong use, 130 stopped by Ctrl-C
(143 by SIGTERM):
nothing is written then, and nobody goes on measuring.
"""

MIN_SECONDS, MAX_SECONDS = 0.01, 10.0
MAX_STREAMS = 16


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `measure` to `blast`."""
    parser = add_command(subparsers, "measure", "find what each host can send to each other one", "")
    parser.description, parser.epilog = _DESCRIPTION, _EXAMPLES
    parser.add_argument(
        "--hosts", metavar="HOST,…", type=checked(_hosts), required=True, help="HOST, HOST:PORT or HOST=ADDRESS:PORT"
    )
    parser.add_argument("--root", metavar="HOST", help="where data comes from (default: this host, by its own name)")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write the network there")
    size = parser.add_argument_group("how it is measured")
    size.add_argument("--bytes", metavar="SIZE", type=checked(parse_bytes), default=8 << 20, help="default: 8 MiB")
    size.add_argument("--seconds", metavar="TIME", type=checked(_seconds), default=0.5, help="default: 0.5")
    size.add_argument(
        "--streams", metavar="N", type=checked(_streams), default=1, help="connections of a link, and one; the better"
    )
    _add_others(parser)
    add_agents(parser)
    parser.set_defaults(run=_run)


def _add_others(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("who else may know", "Then nothing is measured, and hosts need no agents.")
    others = group.add_mutually_exclusive_group()
    others.add_argument(
        "--topology", action="store_true", help="the controller: the rates that its configuration has for access links"
    )
    others.add_argument("--monitor", metavar="COMMAND", help="a program that is given the hosts and writes a network")
    others.add_argument("--file", metavar="FILE", type=Path, help="a network file: it is checked, and shown")


@telling_failures
def _run(arguments: argparse.Namespace) -> int:
    # `blast` loads this file at every start; the data plane is loaded when it is needed.
    from blast_client.capacities.job import run_measure

    return run_measure(arguments)


def _hosts(text: str) -> list[Receiver]:
    """Raises ValueError."""
    return parse_receivers([text])


def _seconds(text: str) -> float:
    """Raises ValueError."""
    seconds = parse_seconds(text)
    if not MIN_SECONDS <= seconds <= MAX_SECONDS:
        raise ValueError(f"a link is measured for {MIN_SECONDS:g} to {MAX_SECONDS:g} s, not for {text}")
    return seconds


def _streams(text: str) -> int:
    """Raises ValueError."""
    if not text.isdecimal() or not 1 <= int(text) <= MAX_STREAMS:
        raise ValueError(f"a link is measured by 1 to {MAX_STREAMS} connections, not by {text}")
    return int(text)
