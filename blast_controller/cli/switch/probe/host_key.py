"""The SSH host key that a peer presents. It is shown, never trusted: no login is attempted."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from blast_base.endpoint import Endpoint
from optical_switch.errors import UnreachableError

SECONDS = 10.0
"""Time for a connection and a key exchange: the usual `ssh.open_timeout_ms`."""


@dataclass(frozen=True, slots=True)
class PresentedHostKey:
    """A host key that is not verified: its fingerprint, and its line in the file of `ssh.host_key`."""

    fingerprint: str
    line: str

    def notes(self, endpoint: Endpoint) -> tuple[str, ...]:
        """Return lines that explain how to verify and store the key."""
        return (
            f"{endpoint} presents the SSH host key {self.fingerprint} ({self.line.partition(' ')[0]}), which is not "
            "trusted. Compare it with the key on the switch's console; if they are equal, save the next line as the "
            "file of ssh.host_key",
            self.line,
        )


async def presented_host_key(endpoint: Endpoint) -> PresentedHostKey:
    """Return the host key of a peer.

    Parameters
    ----------
    endpoint : Endpoint
        Address of an SSH server.

    Returns
    -------
    PresentedHostKey
        Its key.

    Raises
    ------
    UnreachableError
        If no key is presented in time.
    """
    import asyncssh

    try:
        async with asyncio.timeout(SECONDS):
            key = await asyncssh.get_server_host_key(endpoint.host, endpoint.port, config=None)
    except (TimeoutError, OSError, asyncssh.Error) as error:
        reason = f"within {SECONDS:g} s" if isinstance(error, TimeoutError) else f"({type(error).__name__})"
        raise UnreachableError(
            f"{endpoint} presents no SSH host key {reason}: check that it is an SSH server"
        ) from error
    if key is None:
        raise UnreachableError(f"{endpoint} presents no SSH host key: it uses another way to prove its identity")
    return PresentedHostKey(key.get_fingerprint(), key.export_public_key().decode().strip())


def lacks_host_key(table: Mapping[str, object]) -> bool:
    """Return true if a table has a table `ssh` that names no host key to trust."""
    ssh = table.get("ssh")
    return isinstance(ssh, Mapping) and "host_key" not in ssh and "known_hosts" not in ssh
