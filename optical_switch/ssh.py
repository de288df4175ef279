"""SSH to a switch whose host key is known beforehand, for any protocol in a session channel. Needs asyncssh.

The SSH environment of the local user is ignored: no configuration, agent or key files, no forwarding, no compression.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import asyncssh

from optical_switch.errors import InvalidDriverSettingError, OpticalSwitchError, SessionLimitError, UnreachableError
from optical_switch.ssh_bridge import Bridge, describe
from optical_switch.unsolicited import FLOOD

KEEPALIVE_SECONDS = 15.0
"""Interval of keepalive requests while the switch sends nothing."""
MAX_MISSED_KEEPALIVES = 2
"""Number of unanswered keepalive requests after which the connection is dropped."""

HostKeys = tuple[Sequence[asyncssh.SSHKey], Sequence[asyncssh.SSHKey], Sequence[asyncssh.SSHKey]]
"""Trusted keys, trusted authorities, revoked keys."""

_RAW = dict.fromkeys(
    [
        asyncssh.PTY_ECHO,
        asyncssh.PTY_ICANON,
        asyncssh.PTY_ICRNL,
        asyncssh.PTY_IEXTEN,
        asyncssh.PTY_ISIG,
        asyncssh.PTY_IXON,
        asyncssh.PTY_OPOST,
    ],
    0,
)
"""Terminal modes without echo, translation or line buffering."""

# asyncssh logs a line for every step of every connection.
logging.getLogger("asyncssh").setLevel(logging.WARNING)


def host_keys(text: str) -> HostKeys:
    """Return the trusted keys of a file in the format of `ssh-keygen`.

    Parameters
    ----------
    text : str
        Content of the file: one public key on each line; lines that begin with `#` are comments.

    Returns
    -------
    HostKeys
        The keys as trusted ones; no authorities, no revoked keys.

    Raises
    ------
    InvalidDriverSettingError
        If there is no key, or a line is not a public key.
    """
    lines = [line for line in map(str.strip, text.splitlines()) if line and not line.startswith("#")]
    if not lines:
        raise InvalidDriverSettingError("has no host key")
    try:
        return [asyncssh.import_public_key(line) for line in lines], [], []
    except (asyncssh.KeyImportError, ValueError) as error:
        raise InvalidDriverSettingError("is no list of public keys, one a line as in a .pub file") from error


def known_host_keys(text: str, host: str, port: int) -> HostKeys:
    """Return the keys of a switch in a file in the format of known_hosts.

    Parameters
    ----------
    text : str
        Content of the file.
    host : str
        Name or address of the switch.
    port : int
        TCP port of the switch.

    Returns
    -------
    HostKeys
        Trusted keys, trusted authorities and revoked keys.

    Raises
    ------
    InvalidDriverSettingError
        If the text has another format, or has no key of this switch.
    """
    try:
        found = asyncssh.import_known_hosts(text).match(host, "", port)
    except ValueError as error:
        raise InvalidDriverSettingError("is not in the format of known_hosts") from error
    if not (found[0] or found[1]):
        raise InvalidDriverSettingError(f"has no key of [{host}]:{port}")
    return found[0], found[1], found[2]


def private_key(text: str) -> asyncssh.SSHKey:
    """Return the private key of a file.

    Parameters
    ----------
    text : str
        Content of the file, in a format of OpenSSH or PEM.

    Returns
    -------
    asyncssh.SSHKey
        The key.

    Raises
    ------
    InvalidDriverSettingError
        If there is no usable key, or it is encrypted.
    """
    try:
        return asyncssh.import_private_key(text)
    except asyncssh.KeyEncryptionError as error:
        raise InvalidDriverSettingError("is encrypted: store it without a passphrase") from error
    except (asyncssh.KeyImportError, ValueError) as error:
        if "Passphrase" in str(error):
            raise InvalidDriverSettingError("is encrypted: store it without a passphrase") from error
        raise InvalidDriverSettingError("has no private key that can be used") from error


class UntrustedHostKeyError(UnreachableError):
    """The SSH server did not prove to be the switch: nothing was sent to it, not even a password."""


class SshLoginRefusedError(UnreachableError):
    """The switch is the right one and refuses this user by SSH."""


@dataclass(frozen=True, slots=True)
class SshTransport:
    """A transport over SSH to a switch whose host key is known.

    The protocol runs in the user's shell, or in a subsystem or command.

    Parameters
    ----------
    user : str
        User at the switch.
    trusted : HostKeys
        Host keys of the switch, as `host_keys` or `known_host_keys` returns them.
    password : str
        Password of the user. Empty: none.
    key : asyncssh.SSHKey | None
        Private key of the user. None: none.
    subsystem : str
        Subsystem to start. Empty: none.
    command : str
        Command to start. Empty: none.
    terminal : bool
        True if the protocol needs a terminal.
    seconds : float
        Time limit for connecting, authenticating and opening the channel together.
    remedy : str
        What to do if the switch does not start the subsystem, command or shell.
    """

    user: str
    trusted: HostKeys
    password: str = field(default="", repr=False)
    key: asyncssh.SSHKey | None = field(default=None, repr=False)
    subsystem: str = ""
    command: str = ""
    terminal: bool = False
    seconds: float = 10.0
    remedy: str = "correct ssh.subsystem, ssh.command or ssh.terminal"

    @property
    def secrets(self) -> frozenset[str]:
        """The password, if there is one."""
        return frozenset(filter(None, [self.password]))

    async def connect(self, link: asyncio.Protocol, host: str, port: int) -> None:
        """Connect, authenticate and start the protocol, within the time limit of this object.

        From then on `link` is served as asyncio serves a protocol, and its transport can write, close and abort. Its
        `connection_lost` is called when the connection has fully ended, with `FloodError` after a flood. A failed call
        leaves nothing open.

        Parameters
        ----------
        link : asyncio.Protocol
            Protocol that receives the bytes of the channel.
        host : str
            Name or address of the switch.
        port : int
            TCP port of the switch.

        Raises
        ------
        UnreachableError
            If no session can be opened.
        SessionLimitError
            If the switch takes no further session.
        UntrustedHostKeyError
            If the switch has another host key than the trusted ones.
        SshLoginRefusedError
            If the switch refuses the user.
        """
        bridge = Bridge(link)
        try:
            async with asyncio.timeout(self.seconds):
                await self._open(bridge, host, port)
        except BaseException as error:
            bridge.abort()
            await bridge.wait_ended()
            if (found := self._unreachable(error, bridge, host, port)) is None:
                raise
            raise found from error

    async def _open(self, bridge: Bridge, host: str, port: int) -> None:
        connection = await asyncssh.connect(
            host,
            port,
            tunnel=cast(Any, bridge),
            client_factory=bridge.client,
            config=None,
            known_hosts=self.trusted,
            x509_trusted_certs=None,
            username=self.user,
            password=self.password or None,
            client_keys=[self.key] if self.key is not None else None,
            preferred_auth="publickey,password,keyboard-interactive",
            agent_path=None,
            gss_host=None,
            compression_algs=None,
            login_timeout=self.seconds,
            keepalive_interval=KEEPALIVE_SECONDS,
            keepalive_count_max=MAX_MISSED_KEEPALIVES,
        )
        await connection.create_session(
            bridge.session,
            self.command or None,
            subsystem=self.subsystem or None,
            request_pty="force" if self.terminal else False,
            term_type="dumb" if self.terminal else None,
            term_modes=_RAW if self.terminal else None,
            env=None,
            send_env=None,
            encoding=None,
        )

    def _unreachable(self, error: BaseException, bridge: Bridge, host: str, port: int) -> OpticalSwitchError | None:
        """Return an error that names the cause and the remedy; None for an error that does not concern the switch."""
        switch = f"optical switch at {host}:{port}"
        if not isinstance(error, Exception):
            return None
        if bridge.tcp_error is not None and bridge.tcp_error is error:
            return UnreachableError(f"{switch} is not reachable: {bridge.tcp_error.strerror or bridge.tcp_error}")
        if bridge.flooded:
            return UnreachableError(f"{switch}: {FLOOD}")
        match error:
            case TimeoutError():
                return UnreachableError(
                    f"{switch} has not opened an SSH session within {self.seconds:g} s: check that it is an SSH "
                    "server, or raise ssh.open_timeout_ms if it is slow"
                )
            case asyncssh.HostKeyNotVerifiable():
                return UntrustedHostKeyError(
                    f"{switch} has another SSH host key ({bridge.refused_key or describe(error)}) than the trusted "
                    "one, so nothing was sent to it: if the switch has a new key, add it to the file of "
                    "ssh.host_key or ssh.known_hosts"
                )
            case asyncssh.PermissionDenied():
                setting = "private_key" if self.key is not None else "password_file"
                return SshLoginRefusedError(
                    f"{switch} does not let {self.user!r} in by SSH: correct ssh.user or the file of ssh.{setting}"
                )
            case asyncssh.ChannelOpenError(code=asyncssh.OPEN_RESOURCE_SHORTAGE):
                return SessionLimitError(describe(error))
            case asyncssh.ChannelOpenError():
                return UnreachableError(
                    f"{switch} does not start {self._program()} by SSH ({describe(error)}): {self.remedy}"
                )
            # The SSH library rejected the peer's messages, but the peer speaks SSH.
            case _ if bridge.speaks_ssh:
                return UnreachableError(
                    f"{switch} aborts SSH ({describe(error)}): check that it has a host key of the trusted type "
                    "and supports current encryption methods"
                )
            case _:
                return UnreachableError(
                    f"{switch} opens no SSH session ({describe(error)}): check that it is an SSH server"
                )

    def _program(self) -> str:
        if self.subsystem:
            return f"the subsystem {self.subsystem!r}"
        return f"the command {self.command!r}" if self.command else "a shell"
