"""`python -m optical_switch.emulator.gnmi_target`: an emulated switch with SONiC until Ctrl-C."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import tempfile
from pathlib import Path

from blast_base.command_line import DONE, FAILED, WRONG_INPUT, checked
from blast_base.endpoint import Endpoint, listen_on, parse_listening
from optical_switch.emulator.gnmi_target.admission import TargetLogin
from optical_switch.emulator.gnmi_target.redis_server import RedisStartError
from optical_switch.emulator.gnmi_target.rpc_server import TargetTls
from optical_switch.emulator.gnmi_target.target import CONNECT_SECONDS, serve_sonic_ocs

BACKLOG = 64
"""Connections that wait to be accepted: a controller, its standby and some collectors that start together."""

_DESCRIPTION = """\
Run an emulated optical circuit switch with SONiC: gNMI over gRPC, CONFIG_DB and STATE_DB in Redis.

When the switch is ready, one line of JSON is printed: address (of gNMI), redis_socket, inputs, outputs.
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the switch; return the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if (options.certificate is None) != (options.private_key is None):
        parser.error("--certificate and --private-key belong together: give both")
    if (options.user is None) != (options.password_file is None):
        parser.error("--user and --password-file belong together: give both")
    try:
        return asyncio.run(_run(options))
    except ValueError as error:
        sys.stderr.write(f"gnmi_target: {error}\n")
        return WRONG_INPUT
    except (OSError, RedisStartError) as error:
        sys.stderr.write(f"gnmi_target: {error}\n")
        return FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gnmi_target", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--ports", type=checked(_positive), default=8, help="number of inputs and of outputs (default: 8)"
    )
    parser.add_argument(
        "--listen",
        type=checked(parse_listening),
        default=Endpoint("127.0.0.1", 0),
        help="address of gNMI, port 0 for any free one (default: 127.0.0.1:0)",
    )
    parser.add_argument("--folder", type=Path, help="folder for Redis (default: a temporary one)")
    parser.add_argument(
        "--connect-ms", type=float, default=CONNECT_SECONDS * 1000, help="time to set circuits, in ms (default: 20)"
    )
    security = parser.add_argument_group("Security")
    security.add_argument("--certificate", type=Path, help="certificate for TLS, in PEM")
    security.add_argument("--private-key", type=Path, help="its key, in PEM")
    security.add_argument("--client-ca", type=Path, help="authority of the clients' certificates, in PEM")
    security.add_argument("--user", help="user that each call needs")
    security.add_argument("--password-file", type=Path, help="file with the user's password in its first line")
    return parser


def _positive(text: str) -> int:
    number = int(text) if text.isascii() and text.isdecimal() else 0
    if number < 1:
        raise ValueError(f"{text!r} is no number of ports: write for example 8")
    return number


async def _run(options: argparse.Namespace) -> int:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    tls = login = None
    if options.certificate is not None:
        tls = TargetTls(options.certificate, options.private_key, options.client_ca)
    if options.user is not None:
        login = TargetLogin(options.user, options.password_file.read_text().partition("\n")[0])
    with tempfile.TemporaryDirectory(prefix="gnmi-target-") as temporary:
        folder = options.folder or Path(temporary)
        ports = options.ports
        listener = listen_on(options.listen.host, options.listen.port, BACKLOG)
        async with serve_sonic_ocs(
            folder, ports, ports, connect_seconds=options.connect_ms / 1000, listener=listener, tls=tls, login=login
        ) as target:
            ready = {
                "address": target.address,
                "redis_socket": str(target.redis_socket),
                "inputs": ports,
                "outputs": ports,
            }
            sys.stdout.write(json.dumps(ready) + "\n")
            sys.stdout.flush()
            await stopped.wait()
    return DONE


if __name__ == "__main__":
    sys.exit(main())
