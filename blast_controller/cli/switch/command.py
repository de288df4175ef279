"""`blast switch`: its sub-commands and their options. `blast` imports this module at every start of the command."""

from __future__ import annotations

import argparse
import sys

from blast_base.command_line import FAILED, checked
from blast_base.endpoint import parse_endpoint
from blast_base.extras import NotInstalledError, require

PROTOCOLS = ("tl1", "netconf", "redis", "gnmi")

_DECODE = """\
Print the messages in a transcript of an optical switch, one JSON object per line. The protocol is recognized by the
content. Passwords in commands of Redis are left out; other contents are printed as they are.

TL1: the text that a switch sends. Continued answers (`>`) are joined; prompts and echoed commands are left out.
  response        sid, ctag, code (COMPLD, DENY, PRTL, DELAY, RTRV), lines; error: the error code of a refusal
  acknowledgment  ctag, code (IP, PF, OK, NA, NG, RL)
  autonomous      sid, ctag (its ATAG), code (*C, **, *, A), verb (such as REPT ALM EQPT), lines
NETCONF: bytes of the SSH subsystem, of one or both directions; or a log of ncclient (at DEBUG it has all messages).
  hello           from (client or server), session_id, capabilities
  rpc             message_id, operation, content
  rpc-reply       message_id; ok, data, or errors with type, tag, severity, app_tag, path, message, info
  notification    time, event, content
Redis: bytes of one or both directions; or lines of `redis-cli MONITOR`.
  command         command, arguments; from MONITOR also time, database, client
  reply, error    value; code, text
  pmessage, …     channel, content: a message of a subscription, or the reply to SUBSCRIBE and the like
gNMI: JSON of gnmic (`--format json` or `event`, of one target or with `--no-prefix`). gNMI on the network is encrypted.
  notification    source, timestamp, prefix, target, updates (path, value), deletes; also from Get
  event           name, timestamp, tags, values
  set_response, capabilities, sync_response, and with `--print-request` get_request, set_request, subscribe_request
All: unparsed     lines: the first 200 bytes of text that is no message, has no end or is too long; error: the reason

The exit status is 0 for any readable transcript.
"""
_DECODE_EXAMPLES = """\
examples:
  blast switch decode transcript.txt
  nc switch.example.org 3082 | blast switch decode - | jq 'select(.kind == "autonomous")'
  ssh -s admin@switch.example.org netconf < requests.xml | blast switch decode --protocol netconf -
  redis-cli -s /var/run/redis/redis.sock MONITOR | blast switch decode -
  gnmic -a switch.example.org:8080 subscribe --path OCS_PORT_TABLE --target STATE_DB | blast switch decode -
"""
_PROBE = """\
Find out which protocol an optical switch speaks, read its ports and circuits, and print its table for the controller's
configuration file. Only reading commands are sent.

Without --driver, the command connects, waits for the first bytes of the switch, and if they show no protocol, sends
messages without effect: RTRV-HDR (TL1, Redis), a TLS handshake, PING in TLS, the beginning of HTTP/2 (gNMI). For TL1,
it tries the read commands of all dialects; for gNMI, both origins.

An SSH host key that is not known is printed with its fingerprint, and is not trusted. Passwords are read from files.
"""
_PROBE_EXAMPLES = """\
examples:
  blast switch probe 10.0.0.5:10033
  blast switch probe 10.0.0.5:3082 --set dialect=polatis --set user=blast --set password_file=/etc/blast/ocs1.password
  blast switch probe ocs1.example.org:830 --set ssh.user=admin --set ssh.private_key=/etc/blast/ocs1.key \\
      --set ssh.host_key=/etc/blast/ocs1.host_key
  blast switch probe ocs2.example.org:8080 --set ca=/etc/blast/ca.pem --set user=admin --set password_file=/etc/blast/pw
  blast switch probe 10.0.0.7:22 --driver tl1 --set ssh.user=admin --set ssh.password_file=/etc/blast/pw --json

Exit status: 0 after a report, 1 if no session can be opened, 2 if a key is missing or wrong.
"""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `switch` and its sub-commands."""
    switch = subparsers.add_parser("switch", help="decode transcripts of optical switches, probe a switch")
    commands = switch.add_subparsers(metavar="COMMAND", required=True)
    _add_decode(commands)
    _add_probe(commands)


def _add_decode(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    decode = commands.add_parser(
        "decode",
        help="print a transcript of TL1, NETCONF, Redis or gNMI as JSON lines",
        description=_DECODE,
        epilog=_DECODE_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    decode.add_argument("file", metavar="FILE", help="transcript; `-` for standard input")
    decode.add_argument("--protocol", choices=PROTOCOLS, help="protocol (default: recognized by the content)")
    decode.add_argument("--json", action="store_true", help="errors as JSON, too")
    decode.set_defaults(run=_decode)


def _decode(options: argparse.Namespace) -> int:
    from blast_controller.cli.switch.decode.decoding import run_decode

    return run_decode(options)


def _add_probe(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    probe = commands.add_parser(
        "probe",
        help="find the protocol, ports and circuits of a switch, and print its configuration",
        description=_PROBE,
        epilog=_PROBE_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    probe.add_argument(
        "address",
        metavar="ADDRESS",
        nargs="?",
        type=checked(parse_endpoint),
        help="HOST:PORT of the switch (for Redis at a Unix socket, give --set socket=PATH instead)",
    )
    probe.add_argument("--driver", metavar="NAME", help="driver: tl1, netconf or sonic-ocs (default: by the protocol)")
    probe.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="key of the table [[optical_switch]], value in TOML; a string needs no quotes (several times)",
    )
    probe.add_argument("--json", action="store_true", help="JSON instead of text")
    probe.set_defaults(run=_probe)


def _probe(options: argparse.Namespace) -> int:
    try:
        require("controller", "pydantic")
    except NotInstalledError as error:
        sys.stderr.write(f"blast switch probe: {error}\n")
        return FAILED
    from blast_controller.cli.switch.probe.probing import run_probe

    return run_probe(options)
