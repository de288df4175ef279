"""Connections, time and withdrawal for `AsyncClient`; sync_io.py has the same names for `Client`.

Many calls may be outstanding on one connection. The controller may answer in another order, so the sequence number
matches each reply to its call. The generated Thrift client encodes and decodes each message in its own buffer; this
module frames messages and waits for them.
"""

from __future__ import annotations

import asyncio
import ssl
import struct
from asyncio import Lock, sleep
from asyncio import timeout as time_limit
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Self, TypeVar, TypeVarTuple

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.protocol.TProtocol import TProtocolException
from thrift.transport.TTransport import TMemoryBuffer, TTransportException

from blast_api import BlastOperator
from blast_client.api.address import Address
from blast_client.api.calls import ClientClosedError, NotConnectedError, TlsError
from blast_client.api.tls import ClientTls, tls_reason

__all__ = ["ClientConnection", "Lock", "clock", "remaining", "run_to_completion", "sleep", "time_limit"]

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

_LENGTH = struct.Struct("!i")
_MAX_FRAME_BYTES = 1 << 20
"""The controller's limit of an answer; a longer one is not from Blast."""

# An event loop holds only weak references to its tasks.
_running = set[asyncio.Task[None]]()


def clock() -> float:
    """Return the time of the event loop in seconds."""
    return asyncio.get_running_loop().time()


def remaining(timeout: float) -> float:
    """Return the timeout unchanged: `time_limit` cancels calls that exceed it."""
    return timeout


async def run_to_completion(
    function: Callable[[*Arguments], Coroutine[object, None, None]], *arguments: *Arguments
) -> None:
    """Run a coroutine in a task of its own, which continues if the caller's task is cancelled again."""
    task = asyncio.create_task(function(*arguments))
    _running.add(task)
    task.add_done_callback(_running.discard)
    await asyncio.shield(task)


class ClientConnection:
    """A connection to one controller, for calls of the tasks of one event loop."""

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
        self._end: Exception = ClientClosedError(address, "while the call was under way")
        self._receiving = asyncio.create_task(self._receive())

    @classmethod
    async def open(
        cls, address: Address, timeout: float, service: type[BlastOperator.Client], tls: ClientTls | None
    ) -> Self:
        """Connect within `timeout` seconds. Raises NotConnectedError, TlsError."""
        try:
            async with asyncio.timeout(timeout):
                if tls is None:
                    streams = await asyncio.open_connection(*address)
                else:
                    streams = await asyncio.open_connection(
                        *address, ssl=tls.context, server_hostname=tls.server_name or address.host
                    )
                return cls(address, streams, service)
        except TimeoutError as error:
            raise NotConnectedError(address, f"no connection within {timeout:g} s") from error
        except ssl.SSLError as error:
            raise TlsError(address, tls_reason(error)) from error
        except OSError as error:
            raise NotConnectedError(address, error.strerror or str(error)) from error

    @property
    def is_open(self) -> bool:
        """True while the connection can receive replies."""
        return not self._receiving.done()

    async def call(self, method: Callable[..., T], arguments: Sequence[object], timeout: float) -> T:
        """Call a method and return its answer.

        Raises the exceptions of the method, TimeoutError, ClientClosedError, OSError, EOFError, TTransportException,
        and TProtocolException for bytes that are not a reply.
        """
        # wait_for of Python 3.11 loses a cancellation that arrives together with the answer.
        async with asyncio.timeout(timeout):
            return await self._call(method, arguments)

    async def _call(self, method: Callable[..., T], arguments: Sequence[object]) -> T:
        if self._writer.is_closing():
            # Writing to a closed TLS transport raises AttributeError.
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
        """Close the connection once no call is outstanding."""
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
        """Close the connection; outstanding calls raise ClientClosedError."""
        self._receiving.cancel()
        with suppress(asyncio.CancelledError):
            await self._receiving
        with suppress(OSError):
            await self._writer.wait_closed()

    async def _receive(self) -> None:
        try:
            while True:
                (length,) = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
                if not 0 < length <= _MAX_FRAME_BYTES:
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
        # The call may have timed out or been cancelled.
        if reply is not None and not reply.done():
            reply.set_result(body)
