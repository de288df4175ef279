"""The bridge between asyncssh and the link of a session: TCP, SSH on it, and a channel in that.

    link (TL1, NETCONF)  <->  channel  <->  SSH  <->  bytes counted  <->  TCP

The session counts the bytes of its protocol, as on plain TCP; the bridge counts all others: padding, banners, ignored
messages, error output. The link sees the connection as lost when both SSH and TCP have ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import asyncssh

from optical_switch.printable import printable
from optical_switch.unsolicited import FLOOD, FloodError, UnsolicitedBudget

PRICE = 4
"""Weight of a byte around the protocol: the smallest SSH message has 36 of them, and costs as much time as a large
one."""
CLOSING_SECONDS = 2.0
"""Time limit for the switch to confirm that the channel is closed."""


class Bridge:
    """One connection, from its first byte to its last."""

    def __init__(self, link: asyncio.Protocol) -> None:
        self._loop = asyncio.get_running_loop()
        self._link = link
        self._budget = UnsolicitedBudget()
        self._tcp: asyncio.Transport | None = None
        self._connection: asyncssh.SSHClientConnection | None = None
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None
        self._linked = self._aborted = False
        self._running = 0
        self._closing: asyncio.TimerHandle | None = None
        self._ended = self._loop.create_future()
        self._cause: Exception | None = None
        self._exit = ""
        self._error_bytes = 0
        self.flooded = False
        self.refused_key = ""
        """The fingerprint of the host key that is not trusted."""
        self.tcp_error: OSError | None = None

    # ------------------------------------------------------------------------------------------- called by asyncssh

    async def create_connection(
        self, factory: Callable[[], asyncio.Protocol], host: str, port: int
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        """Open the TCP connection under SSH."""
        protocol = factory()
        try:
            transport, _ = await self._loop.create_connection(lambda: _Counted(protocol, self), host, port)
        except OSError as error:
            self.tcp_error = error
            raise
        return transport, protocol

    def client(self) -> asyncssh.SSHClient:
        """Return the callbacks of the connection."""
        return _SshClient(self)

    def session(self) -> asyncssh.SSHClientSession[bytes]:
        """Return the callbacks of the channel."""
        return _SshSession(self)

    # ------------------------------------------------------------------------------------------- called by the link

    def write(self, data: bytes) -> None:
        """Send `data`, unless the channel is closed."""
        if self._channel is not None and not self._channel.is_closing() and not self._aborted:
            self._channel.write(data)

    def close(self) -> None:
        """Close after sending buffered data; a switch that does not confirm has `CLOSING_SECONDS`."""
        if self._channel is None or self._closing is not None:
            return
        self._closing = self._loop.call_later(CLOSING_SECONDS, self.abort)
        self._channel.close()

    def abort(self) -> None:
        """Close at once."""
        self._aborted = True
        if self._connection is not None:
            self._connection.abort()
        elif self._tcp is not None:
            self._tcp.abort()

    async def wait_ended(self) -> None:
        """Wait until the connection has ended, at most `CLOSING_SECONDS`."""
        if self._running:
            await asyncio.wait({self._ended}, timeout=CLOSING_SECONDS)

    @property
    def speaks_ssh(self) -> bool:
        """True if the peer has sent its SSH version."""
        return self._connection is not None and bool(self._connection.get_extra_info("server_version"))

    # ------------------------------------------------------------------------------------------- called by the lower
    # layers

    def tcp_made(self, transport: asyncio.Transport) -> None:
        """Note that TCP is connected."""
        self._tcp = transport
        self._running += 1

    def count(self, size: int) -> None:
        """Count `size` bytes that are about to be read."""
        self._budget.spend(PRICE * size, self._loop.time())

    def check(self) -> None:
        """Abort the connection of a peer that has exceeded its budget."""
        if self._budget.overdrawn and not self.flooded:
            self.flooded = self._aborted = True
            assert self._tcp is not None
            self._tcp.abort()

    def ssh_made(self, connection: asyncssh.SSHClientConnection) -> None:
        """Note that SSH begins."""
        self._connection = connection
        self._running += 1

    def over(self, cause: Exception | None = None) -> None:
        """Note that SSH or TCP has ended."""
        self._cause = self._cause or cause
        self._running -= 1
        if self._running:
            return
        if self._closing is not None:
            self._closing.cancel()
        self._ended.set_result(None)
        if self._linked:
            # Called later: asyncssh would hide an exception raised from here.
            self._loop.call_soon(self._link.connection_lost, self._reason())

    def channel_started(self, channel: asyncssh.SSHClientChannel[bytes]) -> None:
        """Connect the link: the channel is ready for the protocol."""
        self._channel = channel
        self._linked = True
        self._link.connection_made(_Transport(self))

    def received(self, data: bytes) -> None:
        """Pass bytes of the protocol to the link, and credit an equal number of bytes of SSH overhead."""
        self._budget.refund(2 * PRICE * len(data))
        if self._aborted:
            return
        try:
            self._link.data_received(data)
        except Exception as error:
            # asyncssh ends the connection without reporting the error.
            self._loop.call_exception_handler({"message": "data_received() over SSH failed", "exception": error})
            raise

    def error_output(self, size: int) -> None:
        """Count dropped error output."""
        self._error_bytes += size

    def exited(self, how: str) -> None:
        """Note how the program on the switch ended."""
        self._exit = how

    def channel_over(self) -> None:
        """Close the connection with its only channel."""
        if self._connection is not None:
            self._connection.close()

    def _reason(self) -> Exception | None:
        if self.flooded:
            return FloodError(FLOOD)
        dropped = f" after {self._error_bytes} bytes of error output" if self._error_bytes else ""
        if self._exit or dropped:
            return ConnectionError(f"the program on the switch ended{self._exit}{dropped}")
        text = describe(self._cause) if self._cause is not None else ""
        return ConnectionError(text) if text and text != "Connection lost" else None


def describe(error: BaseException) -> str:
    """Return the text of an error in printable characters and limited length, because the peer may have chosen it."""
    known = isinstance(error, asyncssh.Error | OSError)
    return printable(str(error) if known else f"{type(error).__name__}: {error}")


class _Counted(asyncio.Protocol):
    """A protocol between TCP and SSH that counts bytes."""

    def __init__(self, protocol: asyncio.Protocol, bridge: Bridge) -> None:
        self._protocol = protocol
        self._bridge = bridge

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._bridge.tcp_made(transport)
        self._protocol.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        self._bridge.count(len(data))
        self._protocol.data_received(data)
        # Only now the share of the protocol is known.
        self._bridge.check()

    def eof_received(self) -> bool | None:
        return self._protocol.eof_received()

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._protocol.connection_lost(exc)
        self._bridge.over(exc)


class _SshClient(asyncssh.SSHClient):
    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        self._bridge.ssh_made(conn)

    def connection_lost(self, exc: Exception | None) -> None:
        self._bridge.over(exc)

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        """Refuse a key that is not trusted, and remember its fingerprint.

        asyncssh calls this for untrusted keys only.
        """
        self._bridge.refused_key = key.get_fingerprint()
        return False


class _SshSession(asyncssh.SSHClientSession[bytes]):
    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        self._channel = chan

    def session_started(self) -> None:
        assert self._channel is not None
        self._bridge.channel_started(self._channel)

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        if datatype is None:
            self._bridge.received(data)
        else:
            self._bridge.error_output(len(data))

    def eof_received(self) -> bool:
        self._bridge.close()
        return True

    def exit_status_received(self, status: int) -> None:
        self._bridge.exited(f" with status {status}" if status else "")

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:
        self._bridge.exited(" by a signal")

    def connection_lost(self, exc: Exception | None) -> None:
        self._bridge.channel_over()


class _Transport(asyncio.Transport):
    """The transport that the link writes to."""

    def __init__(self, bridge: Bridge) -> None:
        super().__init__()
        self._bridge = bridge

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._bridge.write(bytes(data))

    def close(self) -> None:
        self._bridge.close()

    def abort(self) -> None:
        self._bridge.abort()
