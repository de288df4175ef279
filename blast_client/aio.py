"""The asyncio client: the calls of `Client`, many of them outstanding at once on one connection.

A reply finds its call by the sequence number, for replies may come in another order than the calls went. The
generated client encodes and decodes, each message in a buffer of its own; framing and waiting are done here.
"""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TypeVar, TypeVarTuple

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TException
from thrift.transport.TTransport import TMemoryBuffer, TTransportException

from blast_api import BlastOperator
from blast_api.BlastOperator import Iface
from blast_api.ttypes import Event, Grant, MulticastRequest
from blast_client.address import DEFAULT_ADDRESS, Address
from blast_client.arguments import check_call, check_seconds
from blast_client.calls import (
    NOT_BLAST,
    BrokenAtOnce,
    ClientClosed,
    ConnectionBroken,
    ControllerUnreachable,
    NoAnswerInTime,
    NotReached,
    TlsFailed,
    milliseconds,
)
from blast_client.errors import NotLeader, TimedOut, as_answer, refuse_ended
from blast_client.failover import Controllers, Search, parse_addresses
from blast_client.freshness import Freshness
from blast_client.giving_back import AsyncGranted, abandon_async
from blast_client.methods import AsyncMethods
from blast_client.states import with_states
from blast_client.tls import TlsSettings, refuse_open_token, tls_reason

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

_LENGTH = struct.Struct("!i")
_FRAME_BYTES = 1 << 20


class AsyncClient(AsyncMethods):
    """A connection to a controller, opened by the first call; for the tasks of one event loop.

    `timeout` (seconds) bounds how long the controller may take to answer; calls that wait for something add their own.
    Several controllers are named as for `Client`. With `tls` a controller must have a certificate that can be trusted;
    with `token` every connection begins with a login. Raises `BadAddress` for an address that is none,
    `BadCredentials`.
    """

    def __init__(
        self,
        address: str = DEFAULT_ADDRESS,
        timeout: float = 10.0,
        *,
        tls: TlsSettings | None = None,
        token: str | None = None,
    ) -> None:
        self._controllers = Controllers(parse_addresses(address))
        check_seconds(timeout)
        self._timeout = timeout
        self._over = False
        self._freshness = Freshness()
        self._token = token
        self._tls = tls.context() if tls else None
        self._server_name = tls.server_name if tls else None
        self._guard_token(token)
        self._connection: _Pipelined | None = None
        self._connecting = asyncio.Lock()

    @property
    def address(self) -> Address:
        """The controller that is asked."""
        return self._controllers.address

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
        self._over = True

    async def close(self) -> None:
        """Close the connection and fail what is outstanding; the next call opens a new one."""
        connection, self._connection = self._connection, None
        if connection:
            await connection.close()

    # ------------------------------------------------------------------ methods of its own, beside those of the table

    async def await_event(self, key: str, after_sequence: int = 0, timeout: float = 60.0) -> Event:
        """Return the first event of a request above `after_sequence`.

        Raises `TimedOut` after `timeout` seconds, and `Ended` where there will be no such event any more.
        """
        try:
            return await self._wait(Iface.awaitEvent, (key, after_sequence), timeout)
        except TimedOut:
            # A controller of before has no other word for the end.
            refuse_ended(await self.status(key), after_sequence)
            raise

    async def request(self, request: MulticastRequest, timeout: float = 60.0) -> Grant:
        """Ask for a multicast and wait for its first grant, at most `timeout` seconds (then `TimedOut`).

        After `TimedOut` it goes on waiting until this client is closed, or asks again. When the call is cancelled it is
        withdrawn, within three seconds; where that fails, the exception has a note that says so, and the log a warning.
        """
        try:
            return await self._wait(Iface.request, (request,), timeout)
        except Exception:
            raise
        except BaseException as error:
            if self._connection is not None:
                await abandon_async(self, request, error)
            raise

    def granted(self, request: MulticastRequest, timeout: float = 60.0) -> AsyncGranted:
        """`async with client.granted(request) as grant:` gives light back whatever happens in the block.

        As `Client.granted`; a cancelled task counts as an exception, too.
        """
        return AsyncGranted(self, request, timeout)

    async def login(self, token: str) -> None:
        """Say who this client is, on this connection and on those that replace it."""
        self._guard_token(token)
        self._token = None
        await self._call(Iface.login, token)
        self._token = token

    # ------------------------------------------------------------------ the connection

    async def _call(self, method: Callable[[Iface, *Arguments], T], *arguments: *Arguments) -> T:
        check_call(method, arguments)
        return await self._anywhere(method, arguments, None)

    async def _wait(
        self, method: Callable[[Iface, *Arguments, int], T], arguments: tuple[*Arguments], seconds: float
    ) -> T:
        check_seconds(seconds)
        check_call(method, arguments)
        return await self._anywhere(method, arguments, asyncio.get_running_loop().time() + seconds)

    async def _anywhere(self, method: Callable[..., T], arguments: Sequence[object], end: float | None) -> T:
        if self._over:
            raise ClientClosed(self.address, "at the end of its `with`")
        clock = asyncio.get_running_loop().time
        last = (clock() if end is None else end) + self._timeout
        search = Search(self._controllers, self._safe_to_repeat[method.__name__], last)
        while True:
            address = self.address
            try:
                return await self._attempts(method, arguments, end)
            except (ControllerUnreachable, NotLeader) as error:
                pause = search.pause_after(error, address, clock())
                if pause is None:
                    raise
            self._leave(address)
            await asyncio.sleep(pause)

    def _leave(self, address: Address) -> None:
        """Use a controller no more; whatever is outstanding there may still be answered."""
        connection = self._connection
        if connection is not None and connection.address == address:
            self._connection = None
            connection.retire()

    async def _attempts(self, method: Callable[..., T], arguments: Sequence[object], end: float | None) -> T:
        was_open = self._connection is not None and self._connection.open
        try:
            return await self._once(method, arguments, end)
        except ConnectionBroken as error:
            # A connection that was just made and broke is no accident of an old one.
            if not was_open:
                raise BrokenAtOnce(self.address, self._tls is not None) from error
            if not self._safe_to_repeat[method.__name__]:
                raise
        return await self._once(method, arguments, end)

    async def _once(self, method: Callable[..., T], arguments: Sequence[object], end: float | None) -> T:
        while True:
            left = None if end is None else max(end - asyncio.get_running_loop().time(), 0.0)
            wait = None if left is None else self._controllers.longest_wait(left)
            try:
                return await self._carry_out(await self._connected(), method, arguments, wait)
            except TimedOut:
                if wait == left:
                    raise

    async def _carry_out(
        self, connection: _Pipelined, method: Callable[..., T], arguments: Sequence[object], wait: float | None
    ) -> T:
        safe, known = self._safe_to_repeat[method.__name__], self._freshness.known
        seconds = self._controllers.call_timeout(self._timeout) if safe else self._timeout
        if wait is not None:
            arguments, seconds = (*arguments, milliseconds(wait)), wait + seconds
        try:
            # wait_for of Python 3.11 forgets a cancellation that comes with the answer.
            async with asyncio.timeout(seconds):
                answer = await connection.call(method, arguments)
            told = with_states(answer)
            return self._freshness.of(told, known, connection.address) if safe else self._freshness.note(told)
        except TimeoutError as error:
            raise NoAnswerInTime(connection.address, seconds) from error
        except _ClosedHere as error:
            raise ClientClosed(self.address, "while the call was under way") from error
        except ssl.SSLError as error:
            # With TLS 1.3 a client learns only now that its certificate was refused.
            raise TlsFailed(self.address, tls_reason(error)) from error
        except (EOFError, OSError, TTransportException) as error:
            raise ConnectionBroken(self.address, "the connection broke") from error
        except TProtocolException as error:
            raise ControllerUnreachable(self.address, NOT_BLAST) from error
        except TException as answer:
            raise as_answer(answer) from None

    async def _connected(self) -> _Pipelined:
        async with self._connecting:
            here = self._connection
            if here is None or not here.open or here.address != self.address:
                connection = await self._open()
                if self._token is not None:
                    await self._log_in(connection, self._token)
                self._connection = connection
                return connection
            return here

    async def _open(self) -> _Pipelined:
        address, timeout = self.address, self._controllers.call_timeout(self._timeout)
        name = (self._server_name or address.host) if self._tls else None
        try:
            async with asyncio.timeout(timeout):
                streams = await asyncio.open_connection(*address, ssl=self._tls, server_hostname=name)
                return _Pipelined(address, streams, self._service)
        except TimeoutError as error:
            raise NotReached(address, f"no connection within {timeout:g} s") from error
        except ssl.SSLError as error:
            raise TlsFailed(address, tls_reason(error)) from error
        except OSError as error:
            raise NotReached(address, error.strerror or str(error)) from error

    async def _log_in(self, connection: _Pipelined, token: str) -> None:
        try:
            await self._carry_out(connection, Iface.login, (token,), None)
        except BaseException:
            # Nothing else may be asked on a connection that is not who it should be.
            await connection.close()
            raise

    def _guard_token(self, token: str | None) -> None:
        if token is not None and self._tls is None:
            refuse_open_token(self.address)


class _ClosedHere(Exception):
    """The connection ended because its owner closed it: nothing to be repeated."""


class _Pipelined:
    """One connection: calls out, replies in, matched by sequence number."""

    def __init__(
        self,
        address: Address,
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        service: type[BlastOperator.Client],
    ) -> None:
        self.address = address
        self._reader, self._writer = streams
        self._service = service
        self._retired = False
        self._sequence = 0
        self._outstanding: dict[int, asyncio.Future[bytes]] = {}
        self._end: Exception = _ClosedHere()
        self._receiving = asyncio.create_task(self._receive())

    @property
    def open(self) -> bool:
        """Whether replies can still come."""
        return not self._receiving.done()

    async def call(self, method: Callable[..., T], arguments: Sequence[object]) -> T:
        """Make a call and return what it returns, or raise what it raises."""
        if self._writer.is_closing():
            # A TLS transport that is closed fails to be written to with an AttributeError.
            await asyncio.wait([self._receiving])
            raise self._end
        self._sequence = self._sequence % 0x7FFFFFFF + 1
        sequence = self._sequence
        reply = self._outstanding[sequence] = asyncio.get_running_loop().create_future()
        try:
            self._writer.write(self._encoded(method.__name__, sequence, arguments))
            await self._writer.drain()
            return self._decoded(method, await reply)
        finally:
            self._outstanding.pop(sequence, None)
            self._close_if_retired()

    def retire(self) -> None:
        """Close once nothing is outstanding."""
        self._retired = True
        self._close_if_retired()

    def _close_if_retired(self) -> None:
        if self._retired and not self._outstanding:
            self._writer.close()

    def _encoded(self, name: str, sequence: int, arguments: Sequence[object]) -> bytes:
        buffer = TMemoryBuffer()
        thrift = self._service(TBinaryProtocolAccelerated(buffer))
        thrift._seqid = sequence
        getattr(thrift, f"send_{name}")(*arguments)
        body: bytes = buffer.getvalue()
        return _LENGTH.pack(len(body)) + body

    def _decoded(self, method: Callable[..., T], body: bytes) -> T:
        thrift = self._service(TBinaryProtocolAccelerated(TMemoryBuffer(body)))
        answer: T = getattr(thrift, f"recv_{method.__name__}")()
        return answer

    async def close(self) -> None:
        """Close, failing what is outstanding."""
        self._receiving.cancel()
        with suppress(asyncio.CancelledError):
            await self._receiving
        with suppress(OSError):
            await self._writer.wait_closed()

    async def _receive(self) -> None:
        try:
            while True:
                (length,) = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
                if not 0 < length <= _FRAME_BYTES:
                    raise TProtocolException(message=f"frame length {length}")
                self._deliver(await self._reader.readexactly(length))
        except (EOFError, OSError, TProtocolException, TTransportException, ValueError) as broken:
            self._end = broken
        finally:
            if not self._writer.is_closing():
                self._writer.close()
            for reply in self._outstanding.values():
                if not reply.done():
                    reply.set_exception(self._end)

    def _deliver(self, body: bytes) -> None:
        _, _, sequence = TBinaryProtocolAccelerated(TMemoryBuffer(body)).readMessageBegin()
        reply = self._outstanding.get(sequence)
        # The caller may have given up waiting.
        if reply is not None and not reply.done():
            reply.set_result(body)
