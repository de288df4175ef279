"""`blast send`: a file or a stream to many hosts."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from blast_client.failures import telling_failures
from blast_client.options import add_command, checked
from blast_client.receivers import Receiver, parse_receivers
from blast_client.send_words import AUTO, GIVEN, NAMES, RACKS
from blast_client.units import parse_bytes, parse_rate, parse_seconds
from blast_transport.wire.carriers import OPTICAL, PIPELINE, TREES, UNICAST, carrier_named

_DESCRIPTION = """\
Bring a file, or with - standard input, to many hosts, each of which runs `blast agent` (or is given one over SSH).

By light if the controller grants it, along a pipeline over the packet network while it does not, and from one to the
other in mid-transfer (--via auto). Where the links of the packet network are known and uneven (--network), over several
trees at once instead of the pipeline. Every receiver checks what it got before the file has its name.
"""
_EXAMPLES = """\
examples:
  blast send model.bin --to h2,h3,h4 --secret-file /etc/blast/secret
  blast send model.bin --to h2=10.0.2.1:9095,h3=10.0.3.1:9095 --via pipeline
  tar c data | blast send - --to h2,h3 --command unpack --via pipeline
  pg_dump db | blast send - --to h2,h3 --as db.sql --via pipeline
  blast send model.bin --to b,c,d --via trees --network sites.json
  blast send model.bin --to h2,h3 --ssh --ssh-folder /srv/incoming

Exit status: 0 every receiver has it, 3 some have, 1 none has, 2 wrong use, 130 stopped by Ctrl-C (143 by SIGTERM):
receivers keep what they have of a file for a day, and the same command goes on from there.
"""


def register(subparsers: Any) -> None:
    """Add `send` to `blast`."""
    parser = add_command(subparsers, "send", "bring a file or a stream to many hosts", "")
    parser.description, parser.epilog = _DESCRIPTION, _EXAMPLES
    parser.add_argument("file", metavar="FILE", help="what to send; - for standard input")
    parser.add_argument(
        "--to", metavar="HOST,…", type=checked(_receivers), required=True, help="HOST, HOST:PORT or HOST=ADDRESS:PORT"
    )
    _add_target(parser)
    add_way(parser).add_argument(
        "--bytes", metavar="SIZE", type=checked(parse_bytes), help="of a stream that is to go by light"
    )
    _add_ssh(add_agents(parser))
    parser.set_defaults(run=_run)


def _add_target(parser: argparse.ArgumentParser) -> None:
    target = parser.add_argument_group("what becomes of it there")
    target.add_argument(
        "--as",
        "--name",
        dest="name",
        metavar="NAME",
        help="file name, or a path below the folder (default: FILE's; a stream gets one that is in use nowhere)",
    )
    target.add_argument("--folder", metavar="NAME", default="", help="folder of the agents' (default: their first)")
    target.add_argument("--command", metavar="NAME", help="pipe it into this command of the agents' configuration")


def add_way(parser: argparse.ArgumentParser) -> Any:
    """The options that say how data goes; the group that they are in."""
    way = parser.add_argument_group("how it goes")
    ways = (AUTO, OPTICAL, PIPELINE, TREES, UNICAST)
    way.add_argument("--via", type=carrier_named, choices=ways, default=AUTO, help="default: auto")
    way.add_argument("--from", dest="sender", metavar="HOST", help="this host as the controller knows it")
    way.add_argument("--light-address", metavar="IP", help="ours on the light path (default: as towards the hosts)")
    way.add_argument("--sealed", action="store_true", help="encrypt what goes by light (AES-256-GCM)")
    way.add_argument("--order", choices=(RACKS, NAMES, GIVEN), help="of a pipeline (default: racks, where known)")
    way.add_argument(
        "--slowest", metavar="RATE", type=checked(parse_rate), default=0.0, help="exclude slower nodes of a pipeline"
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
    way.add_argument("--patience", metavar="TIME", type=checked(parse_seconds), help="wait so long for light at most")
    return way


def add_agents(parser: argparse.ArgumentParser) -> Any:
    """The options that prove us to the agents; the group that they are in."""
    agents = parser.add_argument_group("agents")
    agents.add_argument("--secret-file", metavar="FILE", type=Path, help="the secret that the agents know")
    agents.add_argument("--agent-cert", metavar="FILE", type=Path, help="our certificate, for agents that speak TLS")
    agents.add_argument("--agent-key", metavar="FILE", type=Path, help="its private key")
    agents.add_argument("--agent-ca", metavar="FILE", type=Path, help="what the agents' certificates are checked by")
    return agents


def _add_ssh(agents: Any) -> None:
    agents.add_argument("--ssh", action="store_true", help="start agents over SSH, for this transfer only")
    agents.add_argument("--ssh-folder", metavar="PATH", help="where they write")
    agents.add_argument("--ssh-user", metavar="NAME")
    agents.add_argument("--ssh-port", metavar="PORT", type=int)
    agents.add_argument("--ssh-options", metavar="TEXT", default="", help="as on ssh's command line")


@telling_failures
def _run(arguments: argparse.Namespace) -> int:
    # `blast` loads this file at every start; the data plane is loaded when it is needed.
    from blast_client.send_job import run_send

    return run_send(arguments)


def _receivers(text: str) -> list[Receiver]:
    """Raises ValueError."""
    return parse_receivers(text.split(","))
