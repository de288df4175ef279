"""The commands `send` and `receive`: one JSON line per event on standard output.

Exit status: 0 all receivers have the file, 1 none, 2 wrong input (one sentence on standard error), 3 some, 130 stopped
by Ctrl-C. For labs and tests: `blast send` and `blast agent` are what people use.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from blast_base.endpoint import Endpoint, parse_endpoint, parse_listening
from blast_transport.base.engines import AUTO, ENGINES
from blast_transport.base.errors import SettingsError, TransportError, WrongInputError
from blast_transport.base.report import Failed, Listening, Received, ReceiverEvent
from blast_transport.credentials.admission import dialer
from blast_transport.credentials.material import SharedSecret, read_secret
from blast_transport.links.dialling import Address
from blast_transport.session.registry import default_choice
from blast_transport.session.route import Route
from blast_transport.session.sender import Sender
from blast_transport.session.settings import SenderSettings
from blast_transport.transports.choices import Chain, MulticastChoice, OpticalChoice, TransportChoice
from blast_transport.transports.plan_file import read_plan
from blast_transport.wire.transports import MULTICAST, OPTICAL, PIPELINE, TRANSPORTS, TREES, transport_named

ALL, NONE, WRONG_INPUT, SOME, INTERRUPTED = 0, 1, 2, 3, 130
_HELP_COLUMNS = 100

_EXAMPLES = """examples:
  python -m blast_transport receive --listen 10.0.0.2:7000 --interface-address 10.1.0.2 --directory incoming \\
      --secret-file secret
  python -m blast_transport send FILE --to h2=10.0.0.2:7000,h3=10.0.0.3:7000 --group 239.1.1.1 --port 5000 \\
      --rate-mbps 100 --interface-address 10.1.0.1 --secret-file secret
"""


class _FixedWidthHelp(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        # Without a width argparse imports shutil, and with it all compression modules.
        super().__init__(prog, width=_HELP_COLUMNS)


class _StandaloneParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"{self.prog}: {message}; --help shows an example\n")
        sys.exit(WRONG_INPUT)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except (WrongInputError, SettingsError) as error:
        sys.stderr.write(f"blast_transport: {error}\n")
        return WRONG_INPUT
    except TransportError as error:
        sys.stderr.write(f"blast_transport: {error}\n")
        return NONE
    except KeyboardInterrupt:
        sys.stderr.write("blast_transport: stopped; the same command goes on from here, within a day\n")
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = _StandaloneParser(
        prog="blast_transport", description=__doc__, epilog=_EXAMPLES, formatter_class=_FixedWidthHelp
    )
    commands = parser.add_subparsers(required=True, metavar="send|receive")

    receive = commands.add_parser(
        "receive", help="receive files until SIGINT or SIGTERM", formatter_class=_FixedWidthHelp
    )
    receive.add_argument(
        "--listen", required=True, type=_listening, metavar="IP:PORT", help="address on the packet network"
    )
    receive.add_argument("--directory", required=True, type=Path, help="directory for received files")
    receive.add_argument("--max-mbps", type=float, metavar="RATE", help="receive limit in Mbit/s (default: none)")
    receive.add_argument(
        "--fsync",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="write files to disk before confirming them (default: on)",
    )
    receive.set_defaults(run=_receive)

    send = commands.add_parser("send", help="send a file to receivers", formatter_class=_FixedWidthHelp)
    send.add_argument("file", type=Path, help="file to send")
    send.add_argument("--to", required=True, type=_receivers, metavar="NAME=IP:PORT,...", help="receivers")
    send.add_argument("--group", metavar="IP", help="granted multicast group")
    send.add_argument("--port", type=int, help="granted UDP port")
    send.add_argument("--rate-mbps", type=float, help="granted or, with multicast, maximum rate on the wire, in Mbit/s")
    send.add_argument("--mtu", type=int, help="maximum IP packet size in bytes (default: MTU of the interface)")
    send.add_argument(
        "--repeat",
        type=int,
        default=1,
        metavar="N",
        help="number of transmissions over the same connections (default: 1)",
    )
    send.add_argument(
        "--transport",
        type=transport_named,
        choices=(*TRANSPORTS,),
        default=OPTICAL,
        help="optical multicast, or a chain, trees or one copy per receiver on the packet network (default: optical)",
    )
    send.add_argument("--trees", type=Path, metavar="FILE", help="tree plan, as printed by blast trees --json")
    send.add_argument(
        "--slowest-mbps",
        type=float,
        default=0.0,
        metavar="RATE",
        help="minimum rate of a chain's node in Mbit/s; slower nodes are excluded (default: 0)",
    )
    send.add_argument("--as-given", action="store_true", help="chain in the order of --to instead of the names' order")
    send.add_argument("--sealed", action="store_true", help="encryption of the optical multicast")
    send.add_argument("--progress", action="store_true", help="progress as JSON lines, several per second")
    send.set_defaults(run=_send)

    for command in (receive, send):
        command.add_argument(
            "--engine", choices=ENGINES, default=AUTO, help="implementation of the data path (default: auto)"
        )
        command.add_argument(
            "--interface-address", metavar="IP", help="address of this host's interface on the optical network"
        )
        command.add_argument(
            "--secret-file", metavar="FILE", type=Path, help="shared secret of both sides (required beyond loopback)"
        )
    return parser


def _receive(options: argparse.Namespace) -> int:
    # A sender should not wait until all of an agent is loaded.
    from blast_transport.standalone.receiver import Receiver, ReceiverSettings

    rate = None if options.max_mbps is None else options.max_mbps * 1e6
    settings = ReceiverSettings(
        options.listen,
        options.directory,
        options.interface_address,
        options.fsync,
        rate,
        credentials=_secret(options),
        engine=options.engine,
    )
    with Receiver(settings, lambda event: _print(_event_to_json(event))) as receiver:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: receiver.stop())
        receiver.run()
    return ALL


def _send(options: argparse.Namespace) -> int:
    if options.repeat < 1:
        raise WrongInputError("--repeat must be at least 1")
    if options.transport == OPTICAL and None in (options.group, options.port, options.rate_mbps):
        raise WrongInputError(
            f"the optical transport needs --group, --port and --rate-mbps; set them, or use --transport {PIPELINE}"
        )
    if options.transport == TREES and options.trees is None:
        raise WrongInputError(f"--transport {TREES} needs --trees FILE, a plan as printed by blast trees --json")
    results = []
    secret = _secret(options)
    settings = SenderSettings(
        options.interface_address,
        options.mtu,
        sealed=options.sealed,
        dialer=dialer(secret),
        credentials=secret,
        engine=options.engine,
    )
    report = (lambda progress: _print(progress.to_json())) if options.progress else None
    with Sender(options.to, settings) as sender:
        for _ in range(options.repeat):
            results.append(sender.send_file(options.file, Route(_way(options)), report=report))
            _print(results[-1].to_json())
    complete = sum(result.complete for result in results)
    if complete == 0:
        return NONE
    return ALL if complete == len(options.to) * options.repeat else SOME


def _secret(options: argparse.Namespace) -> SharedSecret | None:
    return None if options.secret_file is None else SharedSecret(read_secret(options.secret_file))


def _way(options: argparse.Namespace) -> TransportChoice:
    if options.transport == OPTICAL:
        return OpticalChoice(options.group, options.port, options.rate_mbps * 1e6)
    if options.transport == MULTICAST and options.rate_mbps is not None:
        return MulticastChoice(max_rate=options.rate_mbps * 1e6)
    if options.transport == PIPELINE:
        order = tuple(name for name, _, _ in options.to) if options.as_given else None
        return Chain(order, options.slowest_mbps * 1e6)
    if options.transport == TREES:
        return read_plan(options.trees)
    return default_choice(options.transport)


def _event_to_json(event: ReceiverEvent) -> dict[str, object]:
    match event:
        case Listening():
            return {"event": "listening", "host": event.host, "port": event.port}
        case Received():
            return {
                "event": "received",
                "file": event.file,
                "bytes": event.bytes,
                "digest": event.digest,
                "seconds": event.seconds,
                "repaired": event.repaired_bytes,
                "duplicates": event.duplicates,
                "first_datagram_monotonic": event.first_datagram,
                "sender": event.sender,
                "session": event.session,
                "durable": event.durable,
                "engine": event.engine,
            }
        case Failed():
            return {
                "event": "failed",
                "file": event.name,
                "reason": event.reason,
                "sender": event.sender,
                "session": event.session,
            }


def _print(line: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def _listening(text: str) -> Endpoint:
    try:
        return parse_listening(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} {error}") from None


def _endpoint(text: str) -> Endpoint:
    try:
        return parse_endpoint(text, min_port=0)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _receivers(text: str) -> list[Address]:
    receivers = []
    for part in text.split(","):
        name, equals, endpoint = part.partition("=")
        if not equals or not name:
            raise argparse.ArgumentTypeError(f"{part!r} is not NAME=IP:PORT")
        receivers.append((name, *_endpoint(endpoint)))
    return receivers
