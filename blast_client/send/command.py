"""`blast send`: send files, directories or a stream to many hosts."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from blast_base.command_line import checked
from blast_client.cli.failures import report_failures
from blast_client.cli.options import add_command, output_group
from blast_client.cli.units import parse_bytes, parse_rate, parse_seconds
from blast_client.send.limits import add_ssh, parse_buffer, parse_node_timeout
from blast_client.send.option_values import AUTO, GIVEN, HOST_VARIABLE, NAMES, RACKS, SECRET_VARIABLE
from blast_client.send.receivers import Receiver, parse_receivers
from blast_transport.base.engines import AUTO as AUTO_ENGINE
from blast_transport.base.engines import ENGINES
from blast_transport.wire.groups import parse_groups
from blast_transport.wire.transports import TRANSPORTS, transport_named

_DESCRIPTION = """\
Send files, directories or standard input (-) to many hosts. Each host runs `blast agent`, or --ssh starts an agent.

With --via auto the optical transport carries the data after the controller's grant, and the packet network before; the
transport changes during the transfer. Over the packet network, a file of 16 MiB or more goes to several hosts by UDP
multicast, at a rate that is fair to TCP; a pipeline serves hosts that multicast does not reach, and all other data.
With --network, several trees replace both if the links of the packet network differ. Every receiver verifies the data
before it renames the file to its final name.

A directory is sent completely or not at all: files, modes (without setuid), times, and links to its own entries. An
existing entry of the same name is kept, unless it is an empty directory.
"""
_EXAMPLES = """\
examples:
  blast send model.bin --to h2,h3,h4 --secret-file /etc/blast/secret
  blast send model.bin --to h2=10.0.2.1:9095,h3=10.0.3.1:9095 --via pipeline
  blast send data/ --to h2,h3 --as data-17                    a directory, under another name
  blast send a.bin b.bin --to h2,h3 --folder in               two files, each under its own name
  tar c data | blast send - --to h2,h3 --command unpack --via pipeline
  pg_dump db | blast send - --to h2,h3 --as db.sql --via pipeline
  blast send model.bin --to h2,h3,h4 --via multicast --max-rate 500Mbit/s
  blast send model.bin --to b,c,d --via trees --network sites.json
  blast send model.bin --to node[1-64,70] --secret-file secret --failed-file failed
  blast send model.bin --hosts-file failed --secret-file secret

hosts with only an SSH server and Python 3.11 (Figure 2 of the Kascade paper):
  blast send myfile.tgz --to n2,n3,n4 --ssh --ssh-folder /home/login
  blast send myfile.tgz --to n2,n3,n4 --ssh --command 'tar -xzC /opt/'
  dd if=/dev/sda2 | gzip | blast send - --to n2,n3,n4 --ssh --command 'gunzip | dd of=/dev/sda2'
  blast send disk.img --to n2,n3,n4 --ssh --as /dev/sdb

Exit status: 0 every receiver has the data, 3 some have, 1 none has, 2 wrong use, 130 stopped by Ctrl-C (143 by
SIGTERM). After a stop receivers keep partial files for a day, and the same command resumes the transfer. They keep no
part of a stream. Its end counts only if it precedes the signal; Ctrl-C stops all commands of a pipe at once.
"""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `send` to `blast`."""
    parser = add_command(subparsers, "send", "send files, directories or a stream to many hosts", "")
    parser.description, parser.epilog = _DESCRIPTION, _EXAMPLES
    parser.add_argument("file", metavar="FILE", help="file or directory to send, or - for standard input")
    parser.add_argument("more", metavar="FILE", nargs="*", help="more files or directories, sent one after another")
    _add_hosts(parser)
    _add_target(parser)
    transport = add_transport(parser)
    transport.add_argument(
        "--bytes", metavar="SIZE", type=checked(parse_bytes), help="size of a stream, for the optical transport"
    )
    transport.add_argument(
        "--buffer",
        metavar="SIZE",
        type=checked(parse_buffer),
        help="memory of each pipeline node (Kascade's chunks), to send a stream or the input of a command again after "
        "the next node fails; files need none (8MiB to 64MiB, default: 32MiB)",
    )
    add_agents(parser)
    add_ssh(parser)
    parser.set_defaults(run=_run)


def _add_hosts(parser: argparse.ArgumentParser) -> None:
    hosts = parser.add_argument_group("Receivers")
    hosts.add_argument(
        "--to",
        metavar="HOST,…",
        type=checked(_receivers),
        help="receivers: HOST, HOST:PORT or HOST=ADDRESS:PORT; with ClusterShell also node[1-64,70] and @group",
    )
    hosts.add_argument(
        "--hosts-file", metavar="FILE", type=Path, help="file of receivers, a host or a set in each line"
    )
    output = output_group(parser)
    output.add_argument("--ok-file", metavar="FILE", type=Path, help="file for hosts that have the data")
    output.add_argument(
        "--failed-file",
        metavar="FILE",
        type=Path,
        help="file for hosts that do not, or may not, have the data; a --hosts-file for the next attempt",
    )


def _add_target(parser: argparse.ArgumentParser) -> None:
    target = parser.add_argument_group("Destination")
    target.add_argument(
        "--as",
        "--name",
        dest="name",
        metavar="NAME",
        help="file name, or path below the folder (default: name of FILE; a unique name for a stream); with --ssh also "
        "an absolute path of a file or device, which is overwritten",
    )
    target.add_argument(
        "--folder", metavar="NAME", default="", help="folder or device of the agents (default: their first folder)"
    )
    target.add_argument(
        "--command",
        metavar="NAME|LINE",
        help="command that reads the data: a NAME in the agents' configuration; with --ssh a shell LINE, run in "
        "--ssh-folder or /",
    )


def add_transport(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add the options of group Transport, and return the group."""
    transport = parser.add_argument_group("Transport")
    transport.add_argument(
        "--via", type=transport_named, choices=(AUTO, *TRANSPORTS), default=AUTO, help="transport (default: auto)"
    )
    transport.add_argument(
        "--from",
        dest="sender",
        metavar="HOST",
        default=os.environ.get(HOST_VARIABLE) or None,
        help=f"name of this host in the controller's configuration (default: ${HOST_VARIABLE}, else its host name)",
    )
    transport.add_argument(
        "--optical-address",
        metavar="IP",
        help="address of this host on the optical path (default: its address on the route to the receivers)",
    )
    transport.add_argument(
        "--sealed", action="store_true", help="encryption of the data that is multicast (AES-256-GCM)"
    )
    transport.add_argument(
        "--engine",
        choices=ENGINES,
        default=AUTO_ENGINE,
        help="implementation of the data path; auto: compiled if it is installed, else python (default: auto)",
    )
    transport.add_argument(
        "--order", choices=(RACKS, NAMES, GIVEN), help="order of a pipeline (default: racks, if they are known)"
    )
    transport.add_argument(
        "--slowest",
        metavar="RATE",
        type=checked(parse_rate),
        default=0.0,
        help="rate below which a node is excluded from a pipeline (default: none)",
    )
    transport.add_argument(
        "--node-timeout",
        metavar="TIME",
        type=checked(parse_node_timeout),
        help="time after which a silent node of a pipeline is dead, Kascade's timeout (200ms to 10s, default: 1s)",
    )
    _add_multicast(transport)
    transport.add_argument(
        "--network",
        metavar="FILE",
        type=Path,
        help="network file with the rates of the packet network, for planning trees (see `blast trees`)",
    )
    transport.add_argument(
        "--trees", metavar="FILE", type=Path, help="plan of trees for --via trees, printed by `blast trees --json`"
    )
    transport.add_argument(
        "--priority", metavar="N", type=int, help="priority of the request; the highest is served first (default: 0)"
    )
    transport.add_argument(
        "--pending-timeout",
        metavar="TIME",
        type=checked(parse_seconds),
        help="time after which a pending request expires (default: none)",
    )
    return transport


def _add_multicast(transport: argparse._ArgumentGroup) -> None:
    transport.add_argument(
        "--groups",
        metavar="RANGE[,RANGE]",
        type=checked(parse_groups),
        help="groups for the transport multicast, of which a transfer uses one, at most a range of IPv4 and one of "
        "IPv6; one of 232.0.0.0/8 or ff3x::/96 makes memberships source-specific (default: "
        "239.255.0.0/16,ff15::b1a5:0:0/96)",
    )
    transport.add_argument(
        "--multicast-address",
        metavar="IP",
        help="address of this host's interface for the transport multicast (default: that on the route to the "
        "receivers)",
    )
    transport.add_argument(
        "--hops",
        metavar="N",
        type=int,
        default=1,
        help="maximum links that a datagram of the transport multicast passes (default: 1, no router)",
    )
    transport.add_argument(
        "--dscp",
        metavar="N",
        type=int,
        default=0,
        help="class of service of the transport multicast (0 to 63, default: 0)",
    )
    transport.add_argument(
        "--max-rate",
        metavar="RATE",
        type=checked(parse_rate),
        help="maximum rate of the transport multicast on the wire (default: none; congestion control adapts it to the "
        "network)",
    )


def add_agents(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add the options of group Agents, and return the group."""
    agents = parser.add_argument_group("Agents", "Credentials for the agents.")
    agents.add_argument(
        "--secret-file",
        metavar="FILE",
        type=Path,
        help=f"file with the shared secret of the agents (default: ${SECRET_VARIABLE}, unless --agent-cert is given)",
    )
    agents.add_argument("--agent-cert", metavar="FILE", type=Path, help="certificate of this sender, for TLS")
    agents.add_argument("--agent-key", metavar="FILE", type=Path, help="private key of --agent-cert")
    agents.add_argument("--agent-ca", metavar="FILE", type=Path, help="CA certificates for the agents' certificates")
    return agents


@report_failures
def _run(arguments: argparse.Namespace) -> int:
    # Importing the data plane takes longer than the help does.
    from blast_client.send.job import run_send

    return run_send(arguments)


def _receivers(text: str) -> list[Receiver]:
    """Parse receivers. Raises ValueError."""
    return parse_receivers([text])
