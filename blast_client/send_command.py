"""`blast send`: a file or a stream to many hosts."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from blast_client.failures import telling_failures
from blast_client.options import add_command, checked
from blast_client.receivers import Receiver, parse_receivers
from blast_client.send_limits import add_ssh, parse_buffer, parse_node_timeout
from blast_client.send_words import AUTO, GIVEN, HOST_VARIABLE, NAMES, RACKS, SECRET_VARIABLE
from blast_client.units import parse_bytes, parse_rate, parse_seconds
from blast_transport.base.engines import AUTO as AUTO_ENGINE
from blast_transport.base.engines import ENGINES
from blast_transport.wire.transports import OPTICAL, PIPELINE, TREES, UNICAST, transport_named

_DESCRIPTION = """\
Bring files, folders, or with - standard input, to many hosts, each of which runs `blast agent` (or is given one over
SSH).

By light if the controller grants it, along a pipeline over the packet network while it does not, and from one to the
other in mid-transfer (--via auto). Where the links of the packet network are known and uneven (--network), over several
trees at once instead of the pipeline. Every receiver checks what it got before the file has its name.

A folder comes whole or not at all: files, modes (but no setuid), times, and links that lead to something in it. What is
there already under its name is left as it is, unless it is an empty folder.
"""
_EXAMPLES = """\
examples:
  blast send model.bin --to h2,h3,h4 --secret-file /etc/blast/secret
  blast send model.bin --to h2=10.0.2.1:9095,h3=10.0.3.1:9095 --via pipeline
  blast send data/ --to h2,h3 --as data-17                    a folder, under another name
  blast send a.bin b.bin --to h2,h3 --folder in               two files, each under its own name
  tar c data | blast send - --to h2,h3 --command unpack --via pipeline
  pg_dump db | blast send - --to h2,h3 --as db.sql --via pipeline
  blast send model.bin --to b,c,d --via trees --network sites.json
  blast send model.bin --to node[1-64,70] --secret-file secret --failed-file failed
  blast send model.bin --hosts-file failed --secret-file secret

on hosts that have nothing but an SSH server and Python 3.11 (Figure 2 of the Kascade paper):
  blast send myfile.tgz --to n2,n3,n4 --ssh --ssh-folder /home/login
  blast send myfile.tgz --to n2,n3,n4 --ssh --command 'tar -xzC /opt/'
  dd if=/dev/sda2 | gzip | blast send - --to n2,n3,n4 --ssh --command 'gunzip | dd of=/dev/sda2'
  blast send disk.img --to n2,n3,n4 --ssh --as /dev/sdb

Exit status: 0 every receiver has it, 3 some have, 1 none has, 2 wrong use, 130 stopped by Ctrl-C (143 by SIGTERM):
receivers keep what they have of a file for a day, and the same command goes on from there. They keep nothing of a
stream, whose end counts only if it came before the signal, as it does not where Ctrl-C stops all commands of a pipe.
"""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `send` to `blast`."""
    parser = add_command(subparsers, "send", "bring files, folders or a stream to many hosts", "")
    parser.description, parser.epilog = _DESCRIPTION, _EXAMPLES
    parser.add_argument("file", metavar="FILE", help="what to send: a file, a folder, or - for standard input")
    parser.add_argument("more", metavar="FILE", nargs="*", help="more of them, which follow one by one")
    _add_hosts(parser)
    _add_target(parser)
    way = add_way(parser)
    way.add_argument("--bytes", metavar="SIZE", type=checked(parse_bytes), help="of a stream that is to go by light")
    way.add_argument(
        "--buffer",
        metavar="SIZE",
        type=checked(parse_buffer),
        help="Kascade's chunks: what each node of a pipeline keeps in memory, to send it again when the next one dies, "
        "of a stream and of what a command is fed (8MiB to 64MiB, default: 32MiB; a file keeps everything)",
    )
    add_agents(parser)
    add_ssh(parser)
    parser.set_defaults(run=_run)


def _add_hosts(parser: argparse.ArgumentParser) -> None:
    hosts = parser.add_argument_group("to whom")
    hosts.add_argument(
        "--to",
        metavar="HOST,…",
        type=checked(_receivers),
        help="HOST, HOST:PORT or HOST=ADDRESS:PORT; with ClusterShell also node[1-64,70] and @group",
    )
    hosts.add_argument("--hosts-file", metavar="FILE", type=Path, help="hosts, one or a set a line")
    hosts.add_argument("--ok-file", metavar="FILE", type=Path, help="write here who has it in the end, one a line")
    hosts.add_argument(
        "--failed-file", metavar="FILE", type=Path, help="… and who has not, or may not have: the next --hosts-file"
    )


def _add_target(parser: argparse.ArgumentParser) -> None:
    target = parser.add_argument_group("what becomes of it there")
    target.add_argument(
        "--as",
        "--name",
        dest="name",
        metavar="NAME",
        help="file name, or a path below the folder (default: FILE's; a stream gets one that is in use nowhere); with "
        "--ssh also an absolute path, of a file or of a device, which is overwritten",
    )
    target.add_argument(
        "--folder", metavar="NAME", default="", help="folder, or device, of the agents' (default: their first folder)"
    )
    target.add_argument(
        "--command",
        metavar="NAME|LINE",
        help="pipe it into a command: one that the agents' configuration has by this NAME; with --ssh a LINE that a "
        "shell runs there, in --ssh-folder or in /",
    )


def add_way(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """The options that say how data goes; the group that they are in."""
    way = parser.add_argument_group("how it goes")
    ways = (AUTO, OPTICAL, PIPELINE, TREES, UNICAST)
    way.add_argument("--via", type=transport_named, choices=ways, default=AUTO, help="default: auto")
    way.add_argument(
        "--from",
        dest="sender",
        metavar="HOST",
        default=os.environ.get(HOST_VARIABLE) or None,
        help=f"this host as the controller knows it (default: ${HOST_VARIABLE}, else its host name)",
    )
    way.add_argument("--optical-address", metavar="IP", help="ours on the light path (default: as towards the hosts)")
    way.add_argument("--sealed", action="store_true", help="encrypt what goes by light (AES-256-GCM)")
    way.add_argument(
        "--engine",
        choices=ENGINES,
        default=AUTO_ENGINE,
        help="what reads and digests here: Python, what is compiled, or the latter where it is there (default: auto)",
    )
    way.add_argument("--order", choices=(RACKS, NAMES, GIVEN), help="of a pipeline (default: racks, where known)")
    way.add_argument(
        "--slowest", metavar="RATE", type=checked(parse_rate), default=0.0, help="exclude slower nodes of a pipeline"
    )
    way.add_argument(
        "--node-timeout",
        metavar="TIME",
        type=checked(parse_node_timeout),
        help="Kascade's time-out: a neighbor in the pipeline that gives no sign of life for so long is dead "
        "(200ms to 10s, default: 1s)",
    )
    way.add_argument(
        "--network",
        metavar="FILE",
        type=Path,
        help="rates of the packet network: trees are planned for it (see `blast trees`)",
    )
    way.add_argument(
        "--trees", metavar="FILE", type=Path, help="the plan for --via trees, as `blast trees --json` prints it"
    )
    way.add_argument("--priority", metavar="N", type=int, help="who has more gets light first (default: 0)")
    way.add_argument(
        "--pending-timeout", metavar="TIME", type=checked(parse_seconds), help="wait so long for light at most"
    )
    return way


def add_agents(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """The options that prove us to the agents; the group that they are in."""
    agents = parser.add_argument_group("agents")
    agents.add_argument(
        "--secret-file",
        metavar="FILE",
        type=Path,
        help=f"the secret that the agents know (default: ${SECRET_VARIABLE}, unless there is a certificate)",
    )
    agents.add_argument("--agent-cert", metavar="FILE", type=Path, help="our certificate, for agents that speak TLS")
    agents.add_argument("--agent-key", metavar="FILE", type=Path, help="its private key")
    agents.add_argument("--agent-ca", metavar="FILE", type=Path, help="what the agents' certificates are checked by")
    return agents


@telling_failures
def _run(arguments: argparse.Namespace) -> int:
    # `blast` loads this file at every start; the data plane is loaded when it is needed.
    from blast_client.send_job import run_send

    return run_send(arguments)


def _receivers(text: str) -> list[Receiver]:
    """Raises ValueError."""
    return parse_receivers([text])
