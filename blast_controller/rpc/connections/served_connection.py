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
from typing import cast

from thrift.Thrift import TApplicationException

from blast_controller.rpc.connections.connection import Connection
from blast_controller.rpc.connections.dispatch import Answer, Deferred, Reply, answer, deferred_reply, error_reply
from blast_controller.rpc.connections.errors import ClientFault, FrameTooLarge, MalformedMessage
from blast_controller.rpc.connections.frames import FrameDecoder
from blast_controller.rpc.connections.messages import Call
from blast_controller.rpc.connections.server_state import Shared
from blast_controller.serving.tls import certificate_names
from blast_transport.base.endpoint import Endpoint

_log = logging.getLogger(__name__)

_CALLS_WAITING = 32
_WAITS_ENDED_AT_ONCE = 32
"""When a client is gone; others have their turn before the next ones are ended."""
_SECONDS_TO_READ_REPLIES = 30.0
_SECONDS_TO_READ_REFUSAL = 1.0


class _Closed(asyncio.Transport):
    """Stands for a transport that is no more.

    A TLS transport knows its protocol to the end: together they would stay until garbage is collected.
    """

    def is_closing(self) -> bool:
        return True

    def close(self) -> None:
        """Long done."""

    abort = close


_CLOSED = _Closed()


class ServedConnection(asyncio.BufferedProtocol):
    """One client, in the I/O thread.

    As long as it has not proved who it is it has one of few places, small frames, and one call at a time.
    """

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._decoder = FrameDecoder(shared.limits.unauthenticated_frame_bytes)
        self._account: Hashable | None = None
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._working = False
        self._parked: set[Future[object]] = set()
        self._deaf = False
        self._fault: ClientFault | None = None
        self._said_last_word = False
        self._reader_deadline: asyncio.TimerHandle | None = None
        self._login_deadline: asyncio.TimerHandle | None = None
        self._rest: asyncio.TimerHandle | None = None

    @property
    def working(self) -> bool:
        """Whether a worker is busy with a call of this connection."""
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
        patience = self._shared.limits.seconds_to_login
        self._login_deadline = self._shared.loop.call_later(patience, self._send_stranger_away)
        gone = self._shared.strangers.enter(self, str((address or ("?",))[0]))
        if gone is not None:
            gone.make_room()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where to read to: no more of a stranger than one frame of its size."""
        return self._shared.buffer if self._known else self._shared.buffer[: self._decoder.cap]

    def buffer_updated(self, nbytes: int) -> None:
        """Take frames out of the stream as long as there is room for them."""
        if self._deaf:
            return
        self._decoder.receive(bytes(self._shared.buffer[:nbytes]))
        self._take_frames()

    @property
    def _known(self) -> bool:
        """Whether the client has proved who it is, and has a place."""
        return self._account is not None

    def _become_known(self, account: Hashable) -> None:
        """Leave the strangers' places for one of those that are kept for clients who have proved who they are."""
        self._shared.strangers.leave(self)
        if self._login_deadline:
            self._login_deadline.cancel()
        if (refusal := self._shared.refusal(account)) is not None:
            self._shared.counters.refused_connections += 1
            _log.warning("%s refused: %s, no more may be", self.connection.peer, refusal)
            self._deaf = True
            self._transport.abort()
            return
        self._account = account
        self._shared.take(account)
        self._decoder.cap = self._shared.limits.frame_bytes

    def make_room(self) -> None:
        """Go: others have come, and this client has not said who it is."""
        counters = self._shared.counters
        counters.strangers += 1
        counters.crowded_out += 1
        _log.warning("%s closed: it has not said who it is, and others have come", self.connection.peer)
        self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        """End every wait of this client, and tell the handler once its last call has returned."""
        self._deaf, self._transport = True, _CLOSED
        self._waiting.clear()
        for timer in (self._reader_deadline, self._login_deadline, self._rest):
            if timer:
                timer.cancel()
        if self._rest:
            self._working, self._rest = False, None
        self._shared.connections.discard(self)
        self._shared.strangers.leave(self)
        self._shared.counters.connections -= 1
        if self._account is not None:
            self._shared.give_back(self._account)
        self._shared.counters.parked -= len(self._parked)
        parked, self._parked = list(self._parked), set()
        self._end_waits(parked)
        if not self._working:
            self._shared.workers.submit(self._say_farewell)

    def _end_waits(self, parked: list[Future[object]]) -> None:
        for future in parked[-_WAITS_ENDED_AT_ONCE:]:
            future.cancel()
        del parked[-_WAITS_ENDED_AT_ONCE:]
        if parked:
            self._shared.loop.call_soon(self._end_waits, parked)

    def pause_writing(self) -> None:
        """The client does not read its replies: take no further calls, and give it some time."""
        self._transport.pause_reading()
        self._reader_deadline = self._shared.loop.call_later(_SECONDS_TO_READ_REPLIES, self._give_up_on_reader)

    def resume_writing(self) -> None:
        """The client reads again."""
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
        except ClientFault as fault:
            self._deaf, self._fault = True, fault
        self._balance_reading()
        self._start_next_call()

    def _has_room(self) -> bool:
        """Whether another call of this client may wait for its turn."""
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
        """In a worker: whatever happens, report to the I/O thread, which waits for it."""
        self._shared.post(self._worked, self._outcome(frame))

    def _outcome(self, frame: bytes) -> Answer | ClientFault:
        shared = self._shared
        try:
            return answer(shared.codec, shared.handler, self.connection, frame, shared.guard)
        except MalformedMessage as fault:
            return fault
        except Exception as error:  # noqa: BLE001 - the top of a worker's job
            _log.error("a call of %s could not be carried out", self.connection.peer, exc_info=error)
            return ClientFault(f"undecodable call ({type(error).__name__})")

    def _worked(self, outcome: Answer | ClientFault) -> None:
        self._shared.counters.calls += 1
        if isinstance(outcome, ClientFault):
            self._end_with(outcome)
        elif isinstance(outcome, Deferred):
            self._park(outcome.call, outcome.future)
        else:
            self._write(outcome)
        if not (self._known or self._deaf) and (account := self._shared.guard.holder(self.connection)) is not None:
            self._become_known(account)
        if self not in self._shared.connections:
            self._working = False
            self._shared.workers.submit(self._say_farewell)
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
            sentence = f"{len(self._parked)} calls of this connection, {counters.parked} in all, are waiting: no more"
            self._write(error_reply(self._shared.codec, call, self._shared.codec.refusals.too_many_waits(sentence)))
            return
        self._parked.add(future)
        counters.parked += 1
        future.add_done_callback(lambda done: self._shared.post(self._settled, call, done))

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
        if not (self._transport.is_closing() or self._said_last_word):
            self._transport.write(reply.frame)

    def _end_with(self, fault: ClientFault) -> None:
        _log.warning("%s closed: %s", self.connection.peer, fault)
        self.take_no_more_calls()
        if isinstance(fault, FrameTooLarge):
            self._shared.counters.oversized += 1
            self._refuse_oversized(fault)
        else:
            self._shared.counters.malformed += 1
            self.close()

    def _refuse_oversized(self, fault: FrameTooLarge) -> None:
        codec = self._shared.codec
        try:
            header = codec.read_header(fault.beginning)
        except MalformedMessage:
            self.close()
            return
        self._write(Reply(codec.refused(header, TApplicationException.PROTOCOL_ERROR, str(fault)), "client"))
        # Closing now would reset the connection under the client that is still sending, and lose the refusal.
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._said_last_word = True
        self._shared.loop.call_later(_SECONDS_TO_READ_REFUSAL, self._transport.abort)

    def _send_stranger_away(self) -> None:
        if not self._known:
            _log.warning("%s closed: it has not said who it is", self.connection.peer)
            self._shared.counters.strangers += 1
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

    def _say_farewell(self) -> None:
        """In a worker."""
        farewells = [*self.connection.take_close_callbacks(), self._tell_handler]
        for farewell in farewells:
            try:
                farewell()
            except Exception as error:  # noqa: BLE001 - the top of a worker's job
                _log.error("the end of %s could not be handled", self.connection.peer, exc_info=error)

    def _tell_handler(self) -> None:
        self._shared.handler.disconnected(self.connection)


def peer_name(address: tuple[object, ...] | None) -> str:
    """A client's socket address as "HOST:PORT"."""
    return str(Endpoint(str(address[0]), int(str(address[1])))) if address else "?"


def notice_dead_peers(connection: socket.socket) -> None:
    """Have the kernel end a connection whose host died silently (here within 25 s), so that its waits end too."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
