"""TL1 over SSH: the transport of `optical_switch.ssh` with the errors of TL1. Needs asyncssh."""

from __future__ import annotations

import asyncio

from optical_switch.errors import UnreachableError
from optical_switch.ssh import (
    SshLoginRefusedError,
    SshTransport,
    UntrustedHostKeyError,
    host_keys,
    known_host_keys,
    private_key,
)
from tl1_driver.protocol.errors import HostKeyRefusedError, LoginRefusedError, SwitchUnreachableError

__all__ = ["Ssh", "host_keys", "known_host_keys", "private_key"]


class Ssh(SshTransport):
    """A transport for TL1 over SSH, in the user's shell or in a subsystem or command."""

    __slots__ = ()

    async def open(self, link: asyncio.Protocol, host: str, port: int, seconds: float) -> None:
        """Connect, authenticate and start TL1, within the time limit of this object.

        Parameters
        ----------
        link : asyncio.Protocol
            Protocol that receives the bytes of TL1.
        host : str
            Name or address of the switch.
        port : int
            TCP port of the switch.
        seconds : float
            Not used.

        Raises
        ------
        SwitchUnreachableError
            If no session can be opened.
        HostKeyRefusedError
            If the switch has another host key than the trusted ones.
        LoginRefusedError
            If the switch refuses the user.
        """
        try:
            await self.connect(link, host, port)
        except UntrustedHostKeyError as error:
            raise HostKeyRefusedError(str(error)) from error
        except SshLoginRefusedError as error:
            raise LoginRefusedError(str(error)) from error
        except UnreachableError as error:
            raise SwitchUnreachableError(str(error)) from error
