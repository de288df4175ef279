"""Serve an emulated Polatis switch by NETCONF, and print one JSON line when it is ready."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from blast_base.command_line import DONE, FAILED, checked
from blast_base.endpoint import Endpoint, listen_on, parse_listening
from blast_base.extras import NotInstalledError, require
from optical_switch.emulator.netconf_server.data.device_model import MAX_PORT
from optical_switch.model import Circuit

BACKLOG = 100
"""Connections that wait to be accepted: the usual value of asyncio."""
CONNECT_SECONDS = 0.025
"""Default switching time: the vendor's figure."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until interrupted or terminated; return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        require("ssh-switches", "asyncssh")
        asyncio.run(_serve(options))
    except (NotInstalledError, OSError, _HostKeyError) as error:
        sys.stderr.write(f"cannot serve the switch: {error}\n")
        return FAILED
    return DONE


class _HostKeyError(Exception):
    """A file has no private key that can be used."""


async def _serve(options: argparse.Namespace) -> None:
    import asyncssh

    from optical_switch.emulator.netconf_server.server import serve_netconf
    from optical_switch.emulator.netconf_server.settings import NetconfSwitchSettings, UserAccount

    settings = NetconfSwitchSettings(
        accounts={options.user: UserAccount(options.password)},
        connect_seconds=options.connect_seconds,
        host_key=options.host_key.read_text() if options.host_key else "",
    )
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    served = serve_netconf(
        options.ports,
        options.ports,
        apply=_apply,
        settings=settings,
        listener=listen_on(options.listen.host, options.listen.port, BACKLOG),
    )
    try:
        async with served as switch:
            address = str(Endpoint(*switch.address))
            ready = {"event": "ready", "netconf": address, "host_key": switch.host_key}
            sys.stdout.write(f"{json.dumps(ready)}\n")
            sys.stdout.flush()
            await ended.wait()
    except asyncssh.KeyImportError as error:
        raise _HostKeyError(f"{options.host_key} has no private key that can be used: {error}") from error


async def _apply(_removed: Sequence[Circuit], _added: Sequence[Circuit]) -> None:
    """Set no real light paths: this program has only the switch."""


def _port_count(text: str) -> int:
    # Ingress and egress ports have numbers of their own.
    if not text.isdecimal() or not 1 <= int(text) <= MAX_PORT // 2:
        raise ValueError(f"must be a whole number from 1 to {MAX_PORT // 2}")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m optical_switch.emulator.netconf_server", description=__doc__)
    parser.add_argument(
        "--ports", type=checked(_port_count), required=True, help="number of ingress ports, and of egress ports"
    )
    parser.add_argument(
        "--listen", type=checked(parse_listening), default=Endpoint("127.0.0.1", 0), metavar="ADDRESS:PORT",
        help="listening address (default: a free port of 127.0.0.1)",
    )  # fmt: skip
    parser.add_argument("--user", default="admin", help="user name (default: admin)")
    parser.add_argument("--password", default="admin", help="password of the user (default: admin)")
    parser.add_argument("--host-key", type=Path, metavar="FILE", help="private host key (default: a new one)")
    parser.add_argument(
        "--connect-seconds", type=float, default=CONNECT_SECONDS, help=f"switching time (default: {CONNECT_SECONDS} s)"
    )
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
