"""The server's side of one client: an asyncio protocol that lives in the I/O thread and never waits.

The calls of a connection are carried out one after another, each in a worker, so that a client that pipelines `submit`
and `awaitEvent` finds its request. A deferred call holds no worker and its reply leaves whenever it is ready. Reading
stops while a client has many calls waiting for their turn, or does not read its replies.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Hashable
from concurrent.futures import Future
from functools import partial
from typing import cast

from thrift.Thrift import TApplicationException

from blast_base.endpoint import Endpoint
from blast_controller.rpc.connections.connection import Connection
from blast_controller.rpc.connections.dispatch import Answer, Deferred, Reply, answer, deferred_reply, error_reply
from blast_controller.rpc.connections.errors import ClientError, FrameTooLargeError, MalformedMessageError
from blast_controller.rpc.connections.frames import RpcFrameDecoder
from blast_controller.rpc.connections.messages import Call
from blast_controller.rpc.connections.server_state import Shared
from blast_controller.serving.tls import certificate_names

_log = logging.getLogger(__name__)

_CALLS_WAITING = 32
_WAITS_ENDED_AT_ONCE = 32
"""When a client is gone; others have their turn before the next ones are ended."""
_SECONDS_TO_READ_REPLIES = 30.0
"""A client that does not read its replies holds their memory."""
_SECONDS_TO_READ_REFUSAL = 1.0
"""Without a pause, the reset of the connection would overtake the refusal."""


class _Closed(asyncio.Transport):
    """Stands for a transport that is no more.

    A TLS transport knows its protocol to the end: together they would stay until garbage is collected.
    """

    def is_closing(self) -> bool:
        return True

    def close(self) -> None:
        """Do nothing: already closed."""

    abort = close


_CLOSED = _Closed()


class ServedConnection(asyncio.BufferedProtocol):
    """One client, in the I/O thread.

    As long as it has not proved who it is it has one of few places, small frames, and one call at a time.
    """

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._decoder = RpcFrameDecoder(shared.limits.unauthenticated_frame_bytes)
        self._account: Hashable | None = None
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._working = False
        self._parked: set[Future[object]] = set()
        self._deaf = False
        self._fault: ClientError | None = None
        self._has_sent_last_reply = False
        self._reader_deadline: asyncio.TimerHandle | None = None
        self._login_deadline: asyncio.TimerHandle | None = None
        self._rest: asyncio.TimerHandle | None = None

    @property
    def working(self) -> bool:
        """Return true while a worker handles a call of this connection."""
        return self._working and self._rest is None

    # ------------------------------------------------------------------ what the network does

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Admit the client, or close at once where there are too many that have proved who they are."""
        self._transport = cast(asyncio.Transport, transport)
        counters = self._shared.counters
        counters.accepted += 1
        address = transport.get_extra_info("peername")
        peer = peer_name(address)
        self.connection = Connection(counters.accepted, peer, certificate_names(transport.get_extra_info("peercert")))
        counters.connections += 1
        self._shared.connections.add(self)
        notice_dead_peers(transport.get_extra_info("socket"))
        if (account := self._shared.guard.holder(self.connection)) is not None:
            self._become_known(account)
            return
        timeout = self._shared.limits.seconds_to_login
        self._login_deadline = self._shared.loop.call_later(timeout, self._close_unauthenticated)
        closed = self._shared.unauthenticated.enter(self, str((address or ("?",))[0]))
        if closed is not None:
            closed.make_room()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer to read into: for an unauthenticated client at most one frame of its size."""
        return self._shared.buffer if self._known else self._shared.buffer[: self._decoder.cap]

    def buffer_updated(self, nbytes: int) -> None:
        """Take frames out of the stream as long as there is room for them."""
        if self._deaf:
            return
        self._decoder.receive(bytes(self._shared.buffer[:nbytes]))
        self._take_frames()

    @property
    def _known(self) -> bool:
        """Return true if the client is authenticated and has a place."""
        return self._account is not None

    def _become_known(self, account: Hashable) -> None:
        """Move the connection from the places of unauthenticated clients to those of authenticated ones."""
        self._shared.unauthenticated.leave(self)
        if self._login_deadline:
            self._login_deadline.cancel()
        if (refusal := self._shared.refusal(account)) is not None:
            self._shared.counters.refused_connections += 1
            _log.warning("%s refused: %s, the limit", self.connection.peer, refusal)
            self._deaf = True
            self._transport.abort()
            return
        self._account = account
        self._shared.take(account)
        self._decoder.cap = self._shared.limits.frame_bytes

    def make_room(self) -> None:
        """Close an unauthenticated connection in favor of a new one."""
        counters = self._shared.counters
        counters.unauthenticated += 1
        counters.evicted += 1
        _log.warning("%s closed: it is not authenticated, and other connections need its place", self.connection.peer)
        self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        """End every wait of this client, and notify the handler once its last call has returned."""
        self._deaf, self._transport = True, _CLOSED
        self._waiting.clear()
        for timer in (self._reader_deadline, self._login_deadline, self._rest):
            if timer:
                timer.cancel()
        if self._rest:
            self._working, self._rest = False, None
        self._shared.connections.discard(self)
        self._shared.unauthenticated.leave(self)
        self._shared.counters.connections -= 1
        if self._account is not None:
            self._shared.give_back(self._account)
        self._shared.counters.parked -= len(self._parked)
        parked, self._parked = list(self._parked), set()
        self._end_waits(parked)
        if not self._working:
            self._shared.workers.submit(self._run_close_callbacks)

    def _end_waits(self, parked: list[Future[object]]) -> None:
        for future in parked[-_WAITS_ENDED_AT_ONCE:]:
            future.cancel()
        del parked[-_WAITS_ENDED_AT_ONCE:]
        if parked:
            self._shared.loop.call_soon(self._end_waits, parked)

    def pause_writing(self) -> None:
        """Stop taking calls of a client that does not read its replies, and start its time limit."""
        self._transport.pause_reading()
        self._reader_deadline = self._shared.loop.call_later(_SECONDS_TO_READ_REPLIES, self._give_up_on_reader)

    def resume_writing(self) -> None:
        """Take calls again: the client has read its replies."""
        if self._reader_deadline:
            self._reader_deadline.cancel()
            self._reader_deadline = None
        self._take_frames()

    # ------------------------------------------------------------------ calls

    def _take_frames(self) -> None:
        try:
            while not self._deaf and self._has_room():
                frame = self._decoder.next_frame()
                if frame is None:
                    break
                self._waiting.append(frame)
                self._waiting_bytes += len(frame)
        except ClientError as fault:
            self._deaf, self._fault = True, fault
        self._balance_reading()
        self._start_next_call()

    def _has_room(self) -> bool:
        """Return true if another call of this client may be queued."""
        if not self._known:
            return not (self._waiting or self._working)
        return len(self._waiting) < _CALLS_WAITING and self._waiting_bytes < self._shared.limits.waiting_bytes

    def _balance_reading(self) -> None:
        if self._transport.is_closing():
            return
        if not self._has_room():
            self._transport.pause_reading()
        elif self._reader_deadline is None:
            self._transport.resume_reading()

    def _start_next_call(self) -> None:
        if self._working or self._reader_deadline:
            return
        if self._waiting:
            self._working = True
            frame = self._waiting.popleft()
            self._waiting_bytes -= len(frame)
            if self._shared.answers_at_once(frame):
                self._shared.loop.call_soon(self._worked, self._outcome(frame))
            else:
                self._shared.workers.submit(self._work, frame)
        elif self._fault:
            # The calls in front of the fault were good and have been carried out.
            self._end_with(self._fault)

    def _work(self, frame: bytes) -> None:
        """Handle a call in a worker, and report its end to the I/O thread in every case."""
        self._shared.io.post(partial(self._worked, self._outcome(frame)))

    def _outcome(self, frame: bytes) -> Answer | ClientError:
        shared = self._shared
        try:
            return answer(shared.codec, shared.handler, self.connection, frame, shared.guard)
        except MalformedMessageError as fault:
            return fault
        except Exception as error:  # noqa: BLE001 - the top of a worker's job
            _log.error("a call of %s failed", self.connection.peer, exc_info=error)
            return ClientError(f"undecodable call ({type(error).__name__})")

    def _worked(self, outcome: Answer | ClientError) -> None:
        self._shared.counters.calls += 1
        if isinstance(outcome, ClientError):
            self._end_with(outcome)
        elif isinstance(outcome, Deferred):
            self._park(outcome.call, outcome.future)
        else:
            self._write(outcome)
        if not (self._known or self._deaf) and (account := self._shared.guard.holder(self.connection)) is not None:
            self._become_known(account)
        if self not in self._shared.connections:
            self._working = False
            self._shared.workers.submit(self._run_close_callbacks)
        elif (seconds := self.connection.take_rest(self._shared.loop.time())) > 0:
            # As long as it counts as working, none of its calls is started.
            self._rest = self._shared.loop.call_later(seconds, self._rested)
        else:
            self._rested()

    def _rested(self) -> None:
        self._working, self._rest = False, None
        self._take_frames()

    # ------------------------------------------------------------------ deferred replies

    def _park(self, call: Call, future: Future[object]) -> None:
        if self._deaf:
            future.cancel()
            return
        limits, counters = self._shared.limits, self._shared.counters
        if len(self._parked) >= limits.parked_per_connection or counters.parked >= limits.parked:
            counters.refused_waits += 1
            future.cancel()
            self.connection.asked_too_much(self._shared.loop.time())
            sentence = f"{len(self._parked)} calls of this connection wait, {counters.parked} in all: limit reached"
            self._write(error_reply(self._shared.codec, call, self._shared.codec.refusals.too_many_waits(sentence)))
            return
        self._parked.add(future)
        counters.parked += 1
        future.add_done_callback(lambda done: self._shared.io.post(partial(self._settled, call, done)))

    def _settled(self, call: Call, future: Future[object]) -> None:
        if future not in self._parked:
            return
        self._parked.remove(future)
        self._shared.counters.parked -= 1
        self._write(deferred_reply(self._shared.codec, call, future))

    # ------------------------------------------------------------------ writing and ending

    def _write(self, reply: Reply | None) -> None:
        if reply is None:
            return
        if reply.fault == "client":
            self._shared.counters.refused_calls += 1
        elif reply.fault == "handler":
            self._shared.counters.failed_calls += 1
        if not (self._transport.is_closing() or self._has_sent_last_reply):
            self._transport.write(reply.frame)

    def _end_with(self, fault: ClientError) -> None:
        _log.warning("%s closed: %s", self.connection.peer, fault)
        self.take_no_more_calls()
        if isinstance(fault, FrameTooLargeError):
            self._shared.counters.oversized += 1
            self._refuse_oversized(fault)
        else:
            self._shared.counters.malformed += 1
            self.close()

    def _refuse_oversized(self, fault: FrameTooLargeError) -> None:
        codec = self._shared.codec
        try:
            header = codec.read_header(fault.beginning)
        except MalformedMessageError:
            self.close()
            return
        self._write(Reply(codec.refused(header, TApplicationException.PROTOCOL_ERROR, str(fault)), "client"))
        # Closing now would reset the connection under the client that is still sending, and lose the refusal.
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._has_sent_last_reply = True
        self._shared.loop.call_later(_SECONDS_TO_READ_REFUSAL, self._transport.abort)

    def _close_unauthenticated(self) -> None:
        if not self._known:
            _log.warning("%s closed: it is not authenticated", self.connection.peer)
            self._shared.counters.unauthenticated += 1
            self._transport.abort()

    def _give_up_on_reader(self) -> None:
        _log.warning("%s closed: it has not read its replies for %g s", self.connection.peer, _SECONDS_TO_READ_REPLIES)
        self._transport.abort()

    def take_no_more_calls(self) -> None:
        """Let the call in progress end, and start none."""
        self._deaf, self._fault = True, None
        self._waiting.clear()
        self._waiting_bytes = 0

    def close(self) -> None:
        """Write what is written, and close."""
        # A TLS transport that is closed twice can no longer be aborted.
        if not self._transport.is_closing():
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        self._transport.abort()

    def _run_close_callbacks(self) -> None:
        """Notify the handler of the end of the connection, in a worker."""
        farewells = [*self.connection.take_close_callbacks(), self._notify_handler]
        for callback in farewells:
            try:
                callback()
            except Exception as error:  # noqa: BLE001 - the top of a worker's job
                _log.error("handling the end of %s failed", self.connection.peer, exc_info=error)

    def _notify_handler(self) -> None:
        self._shared.handler.disconnected(self.connection)


def peer_name(address: tuple[object, ...] | None) -> str:
    """Return a client's socket address as "HOST:PORT"."""
    return str(Endpoint(str(address[0]), int(str(address[1])))) if address else "?"


def notice_dead_peers(connection: socket.socket) -> None:
    """Let the kernel detect a dead peer (here within 25 s), so that its waits end too."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
