"""The SSH server of an emulated switch (RFC 6242): host key, users, and the subsystem `netconf`."""

from __future__ import annotations

import hmac
import logging
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import asyncssh

from optical_switch.emulator.crossbar import Crossbar
from optical_switch.emulator.faults import Faults
from optical_switch.emulator.hardware import Apply, OpticalHardware
from optical_switch.emulator.light import PowerModel, no_light
from optical_switch.emulator.netconf_server.channel import NetconfChannel
from optical_switch.emulator.netconf_server.device.shutters import ShutteredPaths
from optical_switch.emulator.netconf_server.session import SessionUser
from optical_switch.emulator.netconf_server.settings import NetconfSwitchSettings, UserAccount
from optical_switch.emulator.netconf_server.switch import EmulatedNetconfSwitch
from optical_switch.emulator.timing import Clock

MAX_CONNECTIONS = 64
"""SSH connections at a time, also before their login."""
LOGIN_SECONDS = 30.0
"""Time for a login."""
KEEPALIVE_SECONDS = 15.0
"""Interval of keepalive requests, so that a client that vanishes does not keep its locks."""

# asyncssh logs a line for every step of every connection.
logging.getLogger("asyncssh").setLevel(logging.WARNING)


@asynccontextmanager
async def serve_netconf(  # noqa: PLR0913
    inputs: int,
    outputs: int,
    *,
    apply: Apply,
    settings: NetconfSwitchSettings,
    listener: socket.socket | None = None,
    power: PowerModel = no_light,
    faults: Faults | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[EmulatedNetconfSwitch]:
    """Serve an emulated switch until the context ends; then nothing of it keeps running.

    Parameters
    ----------
    inputs : int
        Number of ingress ports.
    outputs : int
        Number of egress ports.
    apply : Apply
        Function that sets the light paths.
    settings : NetconfSwitchSettings
        Users, features and switching times.
    listener : socket.socket | None
        Socket that listens; the server closes it. None: a free port of the loopback interface.
    power : PowerModel
        Model of the power at the ports.
    faults : Faults | None
        Injected faults. None: none yet.
    clock : Clock | None
        Source of time. None: the system's clocks.

    Yields
    ------
    EmulatedNetconfSwitch
        The switch.
    """
    shutters = ShutteredPaths(apply)
    hardware = OpticalHardware(
        Crossbar(inputs, outputs),
        shutters,
        settings.connect_seconds,
        settings.disconnect_seconds,
        faults or Faults(),
        power,
        clock or Clock(),
        keeps_failed=False,
    )
    switch = EmulatedNetconfSwitch(hardware, shutters, settings.features)
    connections: set[asyncssh.SSHServerConnection] = set()
    with listener or socket.create_server(("127.0.0.1", 0)) as sock:
        switch.address = sock.getsockname()[:2]
        key = _host_key(settings)
        switch.host_key = key.export_public_key().decode().strip()
        acceptor = await asyncssh.listen(
            sock=sock,
            config=None,
            server_host_keys=[key],
            server_factory=lambda: _SwitchSshServer(settings.accounts, switch, connections),
            encoding=None,
            gss_host=None,
            allow_pty=False,
            agent_forwarding=False,
            login_timeout=LOGIN_SECONDS,
            keepalive_interval=KEEPALIVE_SECONDS,
        )
        try:
            yield switch
        finally:
            acceptor.close()
            for connection in list(connections):
                connection.abort()
                await connection.wait_closed()
            await switch.stop()
            await acceptor.wait_closed()


def _host_key(settings: NetconfSwitchSettings) -> asyncssh.SSHKey:
    if settings.host_key:
        return asyncssh.import_private_key(settings.host_key)
    return asyncssh.generate_private_key("ssh-ed25519")


class _SwitchSshServer(asyncssh.SSHServer):
    """The callbacks of one SSH connection."""

    def __init__(
        self,
        accounts: Mapping[str, UserAccount],
        switch: EmulatedNetconfSwitch,
        connections: set[asyncssh.SSHServerConnection],
    ) -> None:
        self._accounts = accounts
        self._switch = switch
        self._connections = connections
        self._connection: asyncssh.SSHServerConnection | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        self._connections.add(conn)
        if len(self._connections) > MAX_CONNECTIONS:
            conn.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._connection is not None:
            self._connections.discard(self._connection)

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        expected = self._accounts.get(username, UserAccount()).password
        return bool(expected) and hmac.compare_digest(password.encode(), expected.encode())

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        expected = self._accounts.get(username, UserAccount()).public_key
        return bool(expected) and asyncssh.import_public_key(expected) == key

    def session_requested(self) -> NetconfChannel:
        assert self._connection is not None
        if not self._switch.takes_session():
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_RESOURCE_SHORTAGE, "the switch takes no further session")
        name = self._connection.get_extra_info("username")
        address = self._connection.get_extra_info("peername")[0]
        return self._switch.new_channel(SessionUser(name, self._accounts[name].group, address))
