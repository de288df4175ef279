"""Calls to etcd: at whichever member answers, each with a deadline, its errors as faults of a store.

A call is made again at the next member until its time is over. It may then have been carried out twice, so that callers
make only such calls as that does no harm to: all writes are transactions that compare what they would change.

With several addresses in one channel gRPC goes on only from a member that is gone, not from one that is cut off from
the others and hangs; so each member has a channel of its own.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import grpc

from blast_controller.store.errors import JournalError
from blast_controller.store.etcd.access import Access, contents
from blast_controller.store.etcd.errors import CredentialsRefusedError, StoreUnavailableError
from blast_controller.store.etcd.methods import AUTHENTICATE, EtcdMethod
from blast_controller.store.etcd.proto import etcd_pb2 as api
from blast_controller.store.etcd.refusals import as_reason, is_surely_not_done, login_is_over, meaning

log = logging.getLogger(__name__)

Q = TypeVar("Q")
R = TypeVar("R")
Metadata = tuple[tuple[str, str], ...]

PAUSE = 0.02
"""Seconds between two tries, so that a refused connection is not asked for in a busy loop."""
_OPTIONS = (
    # By default a member that was away for a while is looked at again only every two minutes.
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 500),
    # A connection whose other end has vanished without a word is found dead; etcd allows such pings every 5 s.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 2_000),
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.enable_retries", 0),
)
_NEEDS_LEADER = ("hasleader", "true")
"""Makes a member that is cut off from the others fail at once."""


class EtcdConnection:
    """A connection to etcd, usable from any thread, which connects at the first call.

    `timeouts` may be changed at any time. Raises CredentialsUnreadableError.
    """

    def __init__(self, access: Access) -> None:
        self.timeouts = access.timeouts
        self._access = access
        self._channels = [_channel(access, endpoint) for endpoint in access.endpoints]
        self._current = 0
        self._token: str | None = None
        self._closed = threading.Event()

    def __str__(self) -> str:
        return str(self._access)

    @property
    def is_closed(self) -> bool:
        """Return true if the connection is closed."""
        return self._closed.is_set()

    def call(self, method: EtcdMethod[Q, R], request: Q, seconds: float | None = None) -> R:
        """Send one request and return its answer within `seconds` (default: the timeout of the access).

        Raises StoreUnavailableError after the timeout, and the fault of an error answer otherwise.
        """

        def ask(channel: grpc.Channel, metadata: Metadata, timeout: float) -> R:
            answer: R = _unary(channel, method)(request, timeout=timeout, metadata=metadata)
            return answer

        return self._persist(ask, seconds)

    def first(self, method: EtcdMethod[Q, R], request: Q, seconds: float | None = None) -> R:
        """Return the first answer of a stream, which ends with it. Raises as `call`."""

        def ask(channel: grpc.Channel, metadata: Metadata, timeout: float) -> R:
            answers = _stream(channel, method)(iter([request]), timeout=timeout, metadata=metadata)
            try:
                answer: R = next(answers)
            except StopIteration:
                raise _StreamEndedError from None
            finally:
                answers.cancel()
            return answer

        return self._persist(ask, seconds)

    def stream(self, method: EtcdMethod[Q, R], request: Q, seconds: float) -> AnswerStream[R]:
        """Return a stream of answers at the present member, `seconds` long at most.

        Raises StoreUnavailableError, CredentialsUnreadableError.
        """
        channel = self._channels[self._current]
        try:
            return AnswerStream(_stream(channel, method)(iter([request]), timeout=seconds, metadata=self._metadata()))
        except (grpc.RpcError, ValueError) as error:
            raise StoreUnavailableError(str(self), self._judge(error)[0]) from error

    def close(self) -> None:
        """Give up all calls and close all connections. Closing twice is allowed."""
        self._closed.set()
        for channel in self._channels:
            channel.close()

    # -------------------------------------------------------------------------------------------------- one call

    def _persist(self, ask: Callable[[grpc.Channel, Metadata, float], R], seconds: float | None) -> R:
        timeouts = self.timeouts
        end = time.monotonic() + (timeouts.in_all if seconds is None else seconds)
        reason, may_be_done, refusals = "no answer in time", False, 0
        while (left := end - time.monotonic()) > 0 and not self._closed.is_set():
            tried = self._current
            try:
                return ask(self._channels[tried], self._metadata(), min(left, timeouts.at_one))
            except (grpc.RpcError, ValueError, _StreamEndedError) as error:
                reason, fault = self._judge(error)
                # One member's certificate may have run out, and another's not.
                refusals += isinstance(fault, CredentialsRefusedError)
                if fault is not None and refusals in {0, len(self._channels)}:
                    # The fault does not cover an earlier try without an answer.
                    raise (StoreUnavailableError(str(self), reason) if may_be_done else fault) from error
                may_be_done = may_be_done or not is_surely_not_done(reason)
                self._leave(tried)
            self._closed.wait(min(PAUSE, left))
        raise StoreUnavailableError(str(self), reason, may_be_done)

    def _judge(self, error: Exception) -> tuple[str, JournalError | None]:
        """Return why there is no answer, and the fault if another try would not help."""
        reason = as_reason(error.details() if isinstance(error, grpc.RpcError) else str(error))
        if login_is_over(reason):
            self._token = None
        return reason, meaning(str(self), reason)

    def _leave(self, member: int) -> None:
        # Another thread may have gone on already.
        if self._current == member:
            self._current = (member + 1) % len(self._channels)

    def _metadata(self) -> Metadata:
        user = self._access.user
        if user is None:
            return (_NEEDS_LEADER,)
        if self._token is None:
            password = contents(user.password_file).decode().splitlines()[0]
            request = api.AuthenticateRequest(name=user.name, password=password)
            channel = self._channels[self._current]
            answer = _unary(channel, AUTHENTICATE)(request, timeout=self.timeouts.at_one)
            self._token = answer.token
        token = self._token
        return (_NEEDS_LEADER,) if token is None else (_NEEDS_LEADER, ("token", token))


class AnswerStream(Iterator[R]):
    """Answers of a stream as they come; ends with its time, when it is cancelled, and with the connection."""

    def __init__(self, answers: Any) -> None:
        self._answers = answers

    def __next__(self) -> R:
        try:
            answer: R = next(self._answers)
        except grpc.RpcError as error:
            log.debug("a stream of etcd has ended: %s", error)
            raise StopIteration from error
        return answer

    def cancel(self) -> None:
        """End it, from any thread."""
        self._answers.cancel()


class _StreamEndedError(Exception):
    """A stream had no answer."""


def _channel(access: Access, endpoint: str) -> grpc.Channel:
    if access.tls is None:
        return grpc.insecure_channel(endpoint, options=_OPTIONS)
    ca, cert, key = (contents(path) for path in (access.tls.ca, access.tls.cert, access.tls.key))
    return grpc.secure_channel(endpoint, grpc.ssl_channel_credentials(ca, key, cert), options=_OPTIONS)


def _unary(channel: grpc.Channel, method: EtcdMethod[Q, R]) -> Callable[..., R]:
    call: Callable[..., R] = channel.unary_unary(method.path, **_codecs(method))
    return call


def _stream(channel: grpc.Channel, method: EtcdMethod[Q, R]) -> Callable[..., grpc.CallIterator[R]]:
    call: Callable[..., grpc.CallIterator[R]] = channel.stream_stream(method.path, **_codecs(method))
    return call


def _codecs(method: EtcdMethod[Q, R]) -> dict[str, Any]:
    request: Any = method.request
    response: Any = method.response
    return {"request_serializer": request.SerializeToString, "response_deserializer": response.FromString}
