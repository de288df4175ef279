"""The synchronous client: a thin wrapper round the generated one.

Times are in seconds. Whatever a call raises is a `BlastError`, whose text is a sentence: the controller's answers
(`Rejected`, `TimedOut`, …), a `ControllerUnreachable` where there is none, a `WrongArgument` before anything is asked.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TypeVar, TypeVarTuple

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TFramedTransport, TTransportException

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
from blast_client.errors import Denied, NotLeader, TimedOut, Unsupported, as_answer, refuse_ended
from blast_client.failover import Controllers, Search, parse_addresses
from blast_client.freshness import Freshness
from blast_client.giving_back import Granted, abandon
from blast_client.methods import Methods
from blast_client.states import with_states
from blast_client.tls import TlsSettings, refuse_open_token, tls_reason

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")


class Client(Methods):
    """A connection to a controller, opened by the first call. One call at a time: not for several threads.

    Where several controllers stand by each other, name all, with commas between: the one that leads is found, and found
    again when another takes over, without a request being made twice (failover.py).
    `timeout` (seconds) bounds how long the controller may take to answer; calls that wait for something add their own.
    With `tls` the controller must have a certificate that can be trusted; with `token` every connection begins with a
    login. Raises `BadAddress` for an address that is none, `BadCredentials`.
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
        self._freshness = Freshness()
        self._hurry_until: float | None = None
        self._asked = self._over = False
        self._token = token
        self._tls = tls.context() if tls else None
        self._server_name = tls.server_name if tls else None
        self._guard_token(token)
        self._socket = _Socket()
        self._transport = TFramedTransport(self._socket)
        self._thrift = self._service(TBinaryProtocolAccelerated(self._transport))

    @property
    def address(self) -> Address:
        """The controller that is asked."""
        return self._controllers.address

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        self._over = True

    def close(self) -> None:
        """Close the connection; the next call opens a new one."""
        self._transport.close()
        # What a broken call left in the buffers must not reach the next connection.
        self._transport = TFramedTransport(self._socket)
        self._thrift = self._service(TBinaryProtocolAccelerated(self._transport))

    # ------------------------------------------------------------------ methods of its own, beside those of the table

    def await_event(self, key: str, after_sequence: int = 0, timeout: float = 60.0) -> Event:
        """Return the first event of a request above `after_sequence`.

        Raises `TimedOut` after `timeout` seconds, and `Ended` where there will be no such event any more.
        """
        try:
            return self._wait(Iface.awaitEvent, (key, after_sequence), timeout)
        except TimedOut:
            # A controller of before has no other word for the end.
            refuse_ended(self.status(key), after_sequence)
            raise

    def request(self, request: MulticastRequest, timeout: float = 60.0) -> Grant:
        """Ask for a multicast and wait for its first grant, at most `timeout` seconds (then `TimedOut`).

        After `TimedOut` it goes on waiting until this client is closed, or asks again. Interrupted by Ctrl-C (or
        whatever is no Exception) it is withdrawn, within three seconds; where that fails the exception has a note that
        says so.
        """
        self._asked = False
        try:
            return self._wait(Iface.request, (request,), timeout)
        except Exception:
            raise
        except BaseException as error:
            abandon(self, request, error)
            raise

    def granted(self, request: MulticastRequest, timeout: float = 60.0) -> Granted:
        """`with client.granted(request) as grant:` asks for light, and gives it back whatever happens in the block.

        Entering raises what `request` raises, and then nothing is left waiting. After the block the transfer is
        finished (raises `Ended` where the light had gone before); after an exception, Ctrl-C too, the request is
        withdrawn, within three seconds: where that fails, the exception has a note that says so.
        """
        return Granted(self, request, timeout)

    def login(self, token: str) -> None:
        """Say who this client is, on this connection and on those that replace it."""
        self._guard_token(token)
        self._token = None
        self._call(Iface.login, token)
        self._token = token

    # ------------------------------------------------------------------ the connection

    @contextmanager
    def _hurrying(self, seconds: float) -> Iterator[None]:
        """Let the calls in this block, all together, take no longer than that (then `NoAnswerInTime`)."""
        self._hurry_until = time.monotonic() + seconds
        try:
            yield
        finally:
            self._hurry_until = None

    @property
    def _call_timeout(self) -> float:
        """How long all controllers together may take to answer, in seconds."""
        if self._hurry_until is None:
            return self._timeout
        return max(0.001, min(self._timeout, self._hurry_until - time.monotonic()))

    def _call_timeout_for(self, name: str) -> float:
        """How long one controller may take to answer, in seconds."""
        return self._controllers.call_timeout(self._call_timeout) if self._safe_to_repeat[name] else self._call_timeout

    def _call(self, method: Callable[[Iface, *Arguments], T], *arguments: *Arguments) -> T:
        check_call(method, arguments)
        name = method.__name__

        def attempt() -> T:
            return self._once(method, arguments, self._call_timeout_for(name))

        return self._anywhere(name, attempt, time.monotonic() + self._call_timeout)

    def _wait(self, method: Callable[[Iface, *Arguments, int], T], arguments: tuple[*Arguments], seconds: float) -> T:
        check_seconds(seconds)
        check_call(method, arguments)
        end, name = time.monotonic() + seconds, method.__name__

        def attempt() -> T:
            while True:
                left = max(end - time.monotonic(), 0.0)
                wait = self._controllers.longest_wait(left)
                try:
                    return self._once(method, (*arguments, milliseconds(wait)), wait + self._call_timeout_for(name))
                except TimedOut:
                    if wait == left:
                        raise

        return self._anywhere(name, attempt, end + self._call_timeout)

    def _anywhere(self, name: str, attempt: Callable[[], T], end: float) -> T:
        if self._over:
            raise ClientClosed(self.address, "at the end of its `with`")
        search = Search(self._controllers, self._safe_to_repeat[name], end)
        while True:
            address = self.address
            try:
                return self._attempts(name, attempt)
            except (ControllerUnreachable, NotLeader) as error:
                pause = search.pause_after(error, address, time.monotonic())
                if pause is None:
                    raise
            self.close()
            time.sleep(pause)

    def _attempts(self, name: str, attempt: Callable[[], T]) -> T:
        was_open = self._socket.isOpen()
        try:
            return attempt()
        except ConnectionBroken as error:
            # A connection that was just made and broke is no accident of an old one.
            if not was_open:
                raise BrokenAtOnce(self.address, self._tls is not None) from error
            if not self._safe_to_repeat[name]:
                raise
        return attempt()

    def _once(self, method: Callable[..., T], arguments: Sequence[object], timeout: float) -> T:
        self._connect()
        return self._carry_out(method, arguments, timeout)

    def _carry_out(self, method: Callable[..., T], arguments: Sequence[object], timeout: float) -> T:
        self._socket.setTimeout(timeout * 1000)
        self._asked = True
        known = self._freshness.known
        try:
            answer: T = with_states(getattr(self._thrift, method.__name__)(*arguments))
            if self._safe_to_repeat[method.__name__]:
                return self._freshness.of(answer, known, self.address)
            return self._freshness.note(answer)
        except TTransportException as error:
            self.close()
            if isinstance(error.inner, ssl.SSLError) and not isinstance(error.inner, ssl.SSLEOFError):
                # With TLS 1.3 a client learns only now that its certificate was refused.
                raise TlsFailed(self.address, tls_reason(error.inner)) from error
            if error.type == TTransportException.TIMED_OUT:
                raise NoAnswerInTime(self.address, timeout) from error
            raise ConnectionBroken(self.address, "the connection broke") from error
        except (TProtocolException, EOFError) as error:
            self.close()
            raise ControllerUnreachable(self.address, NOT_BLAST) from error
        except TException as answer:
            raise as_answer(answer) from None
        except BaseException:
            # The reply is on its way; the next call would take it for its own.
            self.close()
            raise

    def _connect(self) -> None:
        if self._socket.isOpen():
            return
        self.close()
        try:
            connection = socket.create_connection(self.address, self._call_timeout_for("ping"))
        except OSError as error:
            raise NotReached(self.address, error.strerror or str(error)) from error
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setHandle(self._with_tls(connection))
        if self._token is not None:
            self._log_in(self._token)

    def _with_tls(self, connection: socket.socket) -> socket.socket:
        if self._tls is None:
            return connection
        try:
            return self._tls.wrap_socket(connection, server_hostname=self._server_name or self.address.host)
        except OSError as error:
            connection.close()
            raise TlsFailed(self.address, tls_reason(error)) from error

    def _log_in(self, token: str) -> None:
        try:
            self._carry_out(Iface.login, (token,), self._call_timeout)
        except (Denied, Unsupported):
            # Nothing else may be asked on a connection that is not who it should be.
            self.close()
            raise

    def _guard_token(self, token: str | None) -> None:
        if token is not None and self._tls is None:
            refuse_open_token(self.address)


class _Socket(TSocket):  # type: ignore[misc]
    """A socket that notices under TLS too that the other side has closed."""

    def isOpen(self) -> bool:  # noqa: N802 - Thrift's name
        if not isinstance(self.handle, ssl.SSLSocket):
            is_open: bool = super().isOpen()
            return is_open
        timeout = self.handle.gettimeout()
        try:
            self.handle.settimeout(0)
            # Between calls nothing is due: whatever can be read is the end, or nothing that we understand.
            self.handle.recv(1)
        except ssl.SSLWantReadError:
            self.handle.settimeout(timeout)
            return True
        except OSError:
            pass
        self.close()
        return False
