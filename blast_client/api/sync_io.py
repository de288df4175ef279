"""Connections, time and withdrawal for `Client`; async_io.py has the same names for `AsyncClient`."""

from __future__ import annotations

import math
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextlib import nullcontext as Lock  # noqa: N812 - one call at a time needs no lock
from contextvars import ContextVar
from time import sleep
from typing import Self, TypeVar, TypeVarTuple

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TFramedTransport, TTransportException

from blast_api import BlastOperator
from blast_client.api.address import Address
from blast_client.api.calls import NotConnectedError, TlsError
from blast_client.api.tls import ClientTls, tls_reason

__all__ = ["ClientConnection", "Lock", "clock", "remaining", "run_to_completion", "sleep", "time_limit"]

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

_MIN_TIMEOUT_S = 0.001
"""A socket timeout of 0 would mean a non-blocking socket."""

_limit = ContextVar("limit", default=math.inf)


def clock() -> float:
    """Return the time of a monotonic clock in seconds."""
    return time.monotonic()


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Bound the time of all calls in a `with` block together; a call that exceeds it raises AnswerTimeoutError."""
    token = _limit.set(clock() + seconds)
    try:
        yield
    finally:
        _limit.reset(token)


def remaining(timeout: float) -> float:
    """Return a timeout, or the time that is left in the enclosing `time_limit` if that is shorter."""
    return max(_MIN_TIMEOUT_S, min(timeout, _limit.get() - clock()))


def run_to_completion(function: Callable[[*Arguments], None], *arguments: *Arguments) -> None:
    """Run a function."""
    function(*arguments)


class ClientConnection:
    """A connection to one controller, for one call at a time."""

    def __init__(self, address: Address, connected: socket.socket, service: type[BlastOperator.Client]) -> None:
        self.address = address
        self._socket = _Socket()
        self._socket.setHandle(connected)
        self._thrift = service(TBinaryProtocolAccelerated(TFramedTransport(self._socket)))

    @classmethod
    def open(cls, address: Address, timeout: float, service: type[BlastOperator.Client], tls: ClientTls | None) -> Self:
        """Connect within `timeout` seconds. Raises NotConnectedError, TlsError."""
        try:
            connected = socket.create_connection(address, timeout)
        except OSError as error:
            raise NotConnectedError(address, error.strerror or str(error)) from error
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            try:
                connected = tls.context.wrap_socket(connected, server_hostname=tls.server_name or address.host)
            except OSError as error:
                connected.close()
                raise TlsError(address, tls_reason(error)) from error
        return cls(address, connected, service)

    @property
    def is_open(self) -> bool:
        """True while the connection can receive replies."""
        return self._socket.isOpen()

    def call(self, method: Callable[..., T], arguments: Sequence[object], timeout: float) -> T:
        """Call a method and return its answer.

        Raises the exceptions of the method, TimeoutError, ssl.SSLError, TTransportException, and TProtocolException
        for bytes that are not a reply. After all but the first the connection is closed.
        """
        self._socket.setTimeout(timeout * 1000)
        try:
            answer: T = getattr(self._thrift, method.__name__)(*arguments)
            return answer
        except TTransportException as error:
            self.close()
            if isinstance(error.inner, ssl.SSLError) and not isinstance(error.inner, ssl.SSLEOFError):
                raise error.inner from error
            if error.type == TTransportException.TIMED_OUT:
                raise TimeoutError from error
            raise
        except (TProtocolException, EOFError) as error:
            self.close()
            raise TProtocolException(message=str(error)) from error
        except TException:
            raise
        except BaseException:
            # The reply may still arrive; the next call would read it as its own.
            self.close()
            raise

    def retire(self) -> None:
        """Close the connection."""
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


class _Socket(TSocket):  # type: ignore[misc]
    """A socket that detects with TLS, too, that the other end closed the connection."""

    def isOpen(self) -> bool:  # noqa: N802 - Thrift's name
        if not isinstance(self.handle, ssl.SSLSocket):
            is_open: bool = super().isOpen()
            return is_open
        timeout = self.handle.gettimeout()
        try:
            self.handle.settimeout(0)
            # The controller sends nothing between calls: bytes that can be read are the end, or not our protocol.
            self.handle.recv(1)
        except ssl.SSLWantReadError:
            self.handle.settimeout(timeout)
            return True
        except OSError:
            pass
        self.close()
        return False
