"""Agent for one sender, started over SSH: configured on standard input, and ended when that closes.

The first line on standard input is JSON, {"secret": HEX, "settings": TABLES, "light_network": NETWORK or null, "path":
PATH or ""}; the agent writes a JSON line for each event to standard output: first `ready`, with its port and
permissions, which it also writes to the host's system log. Its optical address is the one in that network, or else the
address of the SSH connection.
"""

from __future__ import annotations

import ipaddress
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import BinaryIO

from blast_transport.agent.host_check import check_host
from blast_transport.agent.process import make_server, serve
from blast_transport.agent.reporting import Reporter, install_log
from blast_transport.agent.server import AgentServer
from blast_transport.agent.settings import Settings, from_tables
from blast_transport.base.errors import SettingsError, TransportError, WrongInputError
from blast_transport.credentials.authentication import MIN_SECRET_BYTES
from blast_transport.credentials.material import SharedSecret
from blast_transport.datagrams.interface import check_optical_interface
from blast_transport.remote.audit import client_description, record
from blast_transport.remote.line import COMMAND
from blast_transport.remote.place import tables_of

IDLE_SECONDS = 3600.0
"""Time without any connection after which the sender counts as lost, although standard input is open."""

_MAX_BYTES = 1 << 16
"""Limit of the order, which is one line of JSON."""
_DISCARD = 9
"""Nothing is sent there: connecting a UDP socket selects the local address of the route."""


@dataclass(frozen=True, slots=True)
class Order:
    """Configuration from the sender."""

    secret: SharedSecret
    settings: Settings


def main(stdin: BinaryIO = sys.stdin.buffer) -> int:
    """Run the agent; return the exit status."""
    install_log("warning", "text")
    reporter = Reporter(sys.stdout)
    try:
        order = read_order(stdin.readline(_MAX_BYTES))
        check_host(order.settings)
        may = permissions_of(order.settings)
        record(f"for {client_description(os.environ)}, may {may}")
        server = make_server(order.settings, order.secret, reporter)
    except TransportError as error:
        reporter.report("unusable", str(error), reason=str(error))
        return 1
    threading.Thread(target=_await_end, args=(stdin, server), name="standard input", daemon=True).start()
    serve(server, reporter, _Idleness(server).check, may=may)
    return 0


def read_order(line: bytes) -> Order:
    """Parse the order in the first line. Raise SettingsError."""
    try:
        order = json.loads(line)
        secret = bytes.fromhex(order["secret"])
        path = order.get("path")
        settings = from_tables({**order["settings"], **tables_of(path)} if path else order["settings"])
        network = None if order["light_network"] is None else ipaddress.IPv4Network(str(order["light_network"]))
    except (ValueError, LookupError, TypeError, RecursionError):
        raise SettingsError("standard input holds no valid order of a sender") from None
    if len(secret) < MIN_SECRET_BYTES:
        raise SettingsError(f"the secret has {len(secret)} bytes; at least {MIN_SECRET_BYTES} are needed")
    address = own_address_in(network) if network is not None else address_of_ssh(os.environ)
    return Order(SharedSecret(secret), replace(settings, agent=replace(settings.agent, optical_address=address)))


def permissions_of(settings: Settings) -> str:
    """Return the permissions of an order in words."""
    files = [f"write files below {folder.path}" for folder in settings.folder]
    devices = [f"overwrite {device.path}" for device in settings.device]
    lines = [f"run {command.run[-1] if command.name == COMMAND else command.run}" for command in settings.command]
    return "; ".join((*files, *devices, *lines))


def own_address_in(network: ipaddress.IPv4Network) -> str | None:
    """Return the address of this host for packets to a network, if it belongs to that network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Nothing is sent: the kernel only looks up the way.
            probe.connect((str(network.network_address + 1), _DISCARD))
        except OSError:
            return None
        address = str(probe.getsockname()[0])
    return address if ipaddress.IPv4Address(address) in network else None


def address_of_ssh(environment: Mapping[str, str]) -> str | None:
    """Return the address that an SSH client has connected to (sshd(8)), if it belongs to an interface."""
    try:
        _, _, address, _ = environment.get("SSH_CONNECTION", "").split()
        check_optical_interface(address)
    except (ValueError, WrongInputError):
        return None
    return address


def _await_end(stdin: BinaryIO, server: AgentServer) -> None:
    while stdin.read(1):
        pass
    server.stop("the sender has gone")


class _Idleness:
    def __init__(self, server: AgentServer) -> None:
        self._server = server
        self._last = time.monotonic()

    def check(self) -> None:
        if self._server.busy:
            self._last = time.monotonic()
        elif time.monotonic() - self._last > IDLE_SECONDS:
            self._server.stop("no sender has connected for {IDLE_SECONDS:g} s")


def run() -> None:
    """Run the agent and exit: remaining threads must not keep the process."""
    status = main()
    sys.stdout.flush()
    os._exit(status)
