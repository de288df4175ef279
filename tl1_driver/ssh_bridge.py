"""Between asyncssh and whoever speaks TL1: TCP, SSH on it, a channel in that, and what each says to the others.

    link (TL1)  <->  channel  <->  SSH  <->  bytes counted  <->  TCP

Bytes of TL1 are counted by the session, as on plain TCP; all others are counted here: padding, banners, messages that
are to be ignored, error output. The link is told that the connection is lost when both SSH and TCP are over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import asyncssh

from tl1_driver.unasked import UnaskedBudget
from tl1_driver.ways import TooMuchSaid

FLOOD = "the switch sends far more than it is asked for"
PRICE = 4
"""What a byte counts that is no TL1: the smallest message has 36 of them, and costs as much time as a large one."""
CLOSING_SECONDS = 2.0
"""For the switch to agree that the channel is closed."""
MAX_TOLD = 200
"""Characters of what a switch says about itself."""


class Bridge:
    """One connection, from its first byte to its last."""

    def __init__(self, link: asyncio.Protocol) -> None:
        self._loop = asyncio.get_running_loop()
        self._link = link
        self._budget = UnaskedBudget()
        self._tcp: asyncio.Transport | None = None
        self._connection: asyncssh.SSHClientConnection | None = None
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None
        self._linked = self._aborted = False
        self._running = 0
        self._closing: asyncio.TimerHandle | None = None
        self._gone = self._loop.create_future()
        self._why: Exception | None = None
        self._exit = ""
        self._error_bytes = 0
        self.flooded = False
        self.refused_key = ""
        """The fingerprint of the host key that is not the trusted one."""
        self.tcp_error: OSError | None = None

    # ------------------------------------------------------------------------------------------- what asyncssh asks for

    async def create_connection(
        self, factory: Callable[[], asyncio.Protocol], host: str, port: int
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        """The TCP connection that SSH is spoken on."""
        protocol = factory()
        try:
            transport, _ = await self._loop.create_connection(lambda: _Counted(protocol, self), host, port)
        except OSError as error:
            self.tcp_error = error
            raise
        return transport, protocol

    def client(self) -> asyncssh.SSHClient:
        """Who is told about the connection."""
        return _Client(self)

    def session(self) -> asyncssh.SSHClientSession[bytes]:
        """Who is told about the channel."""
        return _Session(self)

    # ------------------------------------------------------------------------------------------- what the link asks for

    def write(self, data: bytes) -> None:
        """Send `data`, unless the way is closed already."""
        if self._channel is not None and not self._channel.is_closing() and not self._aborted:
            self._channel.write(data)

    def close(self) -> None:
        """End it after what was written has gone out; a switch that does not agree has a while."""
        if self._channel is None or self._closing is not None:
            return
        self._closing = self._loop.call_later(CLOSING_SECONDS, self.abort)
        self._channel.close()

    def abort(self) -> None:
        """End it at once."""
        self._aborted = True
        if self._connection is not None:
            self._connection.abort()
        elif self._tcp is not None:
            self._tcp.abort()

    async def gone(self) -> None:
        """Wait until nothing is left of it, if there was anything; no longer than closing may take."""
        if self._running:
            await asyncio.wait({self._gone}, timeout=CLOSING_SECONDS)

    @property
    def speaks_ssh(self) -> bool:
        """Whether who answers has named a version of SSH."""
        return self._connection is not None and bool(self._connection.get_extra_info("server_version"))

    # ------------------------------------------------------------------------------------------- what comes from below

    def tcp_made(self, transport: asyncio.Transport) -> None:
        """TCP is there."""
        self._tcp = transport
        self._running += 1

    def count(self, size: int) -> None:
        """So many bytes are about to be read."""
        self._budget.spend(PRICE * size, self._loop.time())

    def check(self) -> None:
        """Give up who has said too much."""
        if self._budget.overdrawn and not self.flooded:
            self.flooded = self._aborted = True
            assert self._tcp is not None
            self._tcp.abort()

    def ssh_made(self, connection: asyncssh.SSHClientConnection) -> None:
        """SSH is about to begin."""
        self._connection = connection
        self._running += 1

    def over(self, why: Exception | None = None) -> None:
        """SSH or TCP is over."""
        self._why = self._why or why
        self._running -= 1
        if self._running:
            return
        if self._closing is not None:
            self._closing.cancel()
        self._gone.set_result(None)
        if self._linked:
            # Not from here, where asyncssh would hide an error of ours.
            self._loop.call_soon(self._link.connection_lost, self._reason())

    def channel_started(self, channel: asyncssh.SSHClientChannel[bytes]) -> None:
        """The channel is ready for TL1."""
        self._channel = channel
        self._linked = True
        self._link.connection_made(_Transport(self))

    def received(self, data: bytes) -> None:
        """TL1 for the link; its packaging may be as large."""
        self._budget.refund(2 * PRICE * len(data))
        if self._aborted:
            return
        try:
            self._link.data_received(data)
        except Exception as error:
            # asyncssh ends the connection, and would say nothing.
            self._loop.call_exception_handler({"message": "data_received() of TL1 by SSH failed", "exception": error})
            raise

    def error_output(self, size: int) -> None:
        """So much of it is dropped."""
        self._error_bytes += size

    def exited(self, how: str) -> None:
        """How the program that the switch ran for us ended."""
        self._exit = how

    def channel_over(self) -> None:
        """One channel is all that we want of a connection."""
        if self._connection is not None:
            self._connection.close()

    def _reason(self) -> Exception | None:
        if self.flooded:
            return TooMuchSaid(FLOOD)
        dropped = f" after {self._error_bytes} bytes of error output" if self._error_bytes else ""
        if self._exit or dropped:
            return ConnectionError(f"what the switch runs for us ended{self._exit}{dropped}")
        said = told(self._why) if self._why is not None else ""
        return ConnectionError(said) if said and said != "Connection lost" else None


def told(error: BaseException) -> str:
    """What an error says, where a stranger may have chosen the words."""
    known = isinstance(error, asyncssh.Error | OSError)
    said = str(error) if known else f"{type(error).__name__}: {error}"
    text = "".join(one if one.isprintable() else "?" for one in said)
    return text if len(text) <= MAX_TOLD else f"{text[:MAX_TOLD]}…"


class _Counted(asyncio.Protocol):
    """Stands between TCP and SSH."""

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
        # Only now is known how much of it was TL1.
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


class _Client(asyncssh.SSHClient):
    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        self._bridge.ssh_made(conn)

    def connection_lost(self, exc: Exception | None) -> None:
        self._bridge.over(exc)

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        """Asked only about keys that are not trusted."""
        self._bridge.refused_key = key.get_fingerprint()
        return False


class _Session(asyncssh.SSHClientSession[bytes]):
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
    """What the link writes to."""

    def __init__(self, bridge: Bridge) -> None:
        super().__init__()
        self._bridge = bridge

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._bridge.write(bytes(data))

    def close(self) -> None:
        self._bridge.close()

    def abort(self) -> None:
        self._bridge.abort()
