"""Agents started over SSH on hosts without one: copied there, given a secret, and ended with their sender.

    with started_agents(["h1", "h2"], "/srv/incoming") as agents:
        agents.addresses   # (name, host, port) of every agent that is ready
        agents.failed      # host -> reason why it has no agent
        agents.secret      # authenticates sender and agents to each other
        agents.suite       # digests that all can compute

One SSH connection for each host transports the agent's file, then its configuration with a secret for this use only (on
standard input, because every user can read command lines), and the agent's output. The agent lives as long as its
standard input is open, so it ends with the sender in any case. Requires the Python package ClusterShell.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from blast_base.extras import how_to_install
from blast_transport.agent.bundle import build_bundle
from blast_transport.base.errors import WrongInputError
from blast_transport.blocks.digests import BEST
from blast_transport.credentials.authentication import MIN_SECRET_BYTES
from blast_transport.credentials.material import SharedSecret
from blast_transport.remote import shell as remote_shell
from blast_transport.remote.hosts import HostRegistry
from blast_transport.remote.line import table_of
from blast_transport.remote.script import PYTHONS, start_line
from blast_transport.remote.shell import RemoteShells, ShellSettings

FALLBACK_SUITE = "sha256"
"""Digests that every Python can compute."""

# Text that ssh would take for an option, or ClusterShell for a set of hosts, is not a host.
_HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?")


@dataclass(frozen=True, slots=True)
class StartOptions:
    """Options for starting agents.

    `user`, `port` and `ssh_options` (as on ssh's command line) are for ssh; at most `window` hosts are started
    concurrently, each for at most `seconds`, and at the end all agents together get `end_seconds`. Agents listen on
    `listen`; `addresses` maps hosts to addresses on the packet network, if those differ from their names for ssh.
    `light_network` is the optical network, in which an agent finds its own address (None: the address of the SSH
    connection); `commands` and `limits` are tables as in an agent's configuration. Instead of files below a folder the
    hosts may get `line`, which a shell there runs (the command `remote.line.COMMAND`), or `path`, one file or device
    (below the folder `remote.place.TARGET`). `{host}` in it stands for the host's name.
    """

    user: str | None = None
    port: int | None = None
    ssh_options: str = ""
    window: int = 32
    seconds: float = 30.0
    end_seconds: float = 10.0
    listen: str = "0.0.0.0:0"
    addresses: Mapping[str, str] = field(default_factory=dict)
    light_network: str | None = None
    commands: Sequence[Mapping[str, object]] = ()
    limits: Mapping[str, object] = field(default_factory=dict)
    line: str = ""
    path: str = ""
    pythons: tuple[str, ...] = PYTHONS


class StartedAgents:
    """The agents of some hosts, as far as is known now."""

    def __init__(self, book: HostRegistry, secret: SharedSecret, addresses: Mapping[str, str]) -> None:
        self.secret = secret
        self._book = book
        self._addresses = addresses

    @property
    def addresses(self) -> list[tuple[str, str, int]]:
        """Return (name, host, port) of every agent that is ready, in the order of the hosts."""
        return [(host, self._addresses.get(host, host), port) for host, port in self._book.ports.items()]

    @property
    def suite(self) -> str:
        """Return the best suite that the sender and every agent can compute; an agent has only the standard library."""
        return BEST if BEST in self._book.suites else FALLBACK_SUITE

    @property
    def failed(self) -> dict[str, str]:
        """Return the reason for each host without an agent."""
        return self._book.reasons


@contextmanager
def started_agents(hosts: Sequence[str], folder: str, options: StartOptions | None = None) -> Iterator[StartedAgents]:
    """Start agents on `hosts` that write below `folder` (an absolute path there); end them with the context.

    `{host}` in the folder stands for the host's name, for hosts that share a file system. A line runs in the folder,
    and in / if there is none; a path needs none.
    Comes back when every host has an agent or has failed. Raises WrongInputError for what cannot be right anywhere.
    """
    options = options or StartOptions()
    if not remote_shell.IS_INSTALLED:
        raise WrongInputError(
            f"starting agents over SSH needs the Python package ClusterShell: {how_to_install('ssh')}"
        )
    _refuse_wrong(hosts, folder, options)
    secret = SharedSecret(secrets.token_bytes(MIN_SECRET_BYTES))
    bundle = build_bundle()
    book = HostRegistry(hosts)
    settings = ShellSettings(options.user, options.port, options.ssh_options, options.window, options.seconds)

    def stdin_of(host: str) -> bytes:
        return bundle + _order(secret, folder.replace("{host}", host), options, host)

    shells = RemoteShells(start_line(len(bundle), options.pythons), stdin_of, settings, book)
    try:
        shells.start()
        yield StartedAgents(book, secret, options.addresses)
    finally:
        shells.end(options.end_seconds)


def _order(secret: SharedSecret, folder: str, options: StartOptions, host: str) -> bytes:
    line = [table_of(options.line, folder)] if options.line else []
    tables = {
        "agent": {"listen": options.listen},
        "folder": [{"name": "files", "path": folder}] if not (line or options.path) else [],
        "command": [*(dict(command) for command in options.commands), *line],
        "limits": dict(options.limits),
    }
    order = {
        "secret": secret.value.hex(),
        "settings": tables,
        "light_network": options.light_network,
        "path": options.path.replace("{host}", host),
    }
    return json.dumps(order).encode() + b"\n"


def _refuse_wrong(hosts: Sequence[str], folder: str, options: StartOptions) -> None:
    for host in hosts:
        if not _HOST.fullmatch(host):
            raise WrongInputError(f"{host!r} is no host name: letters, digits, '.', '_' and '-'")
    if len(set(hosts)) != len(hosts):
        raise WrongInputError("a host is named twice: an agent is started once on each")
    if options.line and options.path:
        raise WrongInputError("a host is given either a line to run or a path to write")
    if options.line:
        table_of(options.line, folder)
    if not folder.startswith("/") and (folder or not (options.line or options.path)):
        raise WrongInputError(f"the folder {folder!r} must be an absolute path on the hosts")
    if options.window < 1 or options.seconds <= 0:
        raise WrongInputError("window and seconds of the start must be above 0")
