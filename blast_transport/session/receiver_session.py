"""Session at a receiver, in a thread of its own.

One loop and one selector serve the control connection, the transports, and calls of other threads (a transport with a
thread of its own, a target that is being completed).
"""

from __future__ import annotations

import queue
import selectors
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from threading import Event
from typing import TYPE_CHECKING

from blast_transport.base.engines import AUTO
from blast_transport.base.errors import RemoteProtocolError, StoreError, TransportError, sentence
from blast_transport.base.report import Failed, Received, ReceiverEvent
from blast_transport.base.threads import start_thread
from blast_transport.blocks.block_map import count_held
from blast_transport.blocks.digests import suite_named
from blast_transport.blocks.sealing import Sealer
from blast_transport.datagrams.interface import open_group_socket, receive_buffer
from blast_transport.links.dialling import Dialer, dial
from blast_transport.links.sender_link import SenderLink
from blast_transport.links.verdict import SessionVerdict
from blast_transport.session.receiver_core import ReceiverCore, ReceiverState, ReceiverTimings
from blast_transport.session.registry import new_receiver
from blast_transport.store.opening import open_assembly, open_store
from blast_transport.store.targets.target import Target
from blast_transport.transports.receiving import (
    GroupOpener,
    ReceivingContext,
    ReceivingTransport,
    SegmentsArrived,
    StatusReport,
    StoreLost,
)
from blast_transport.wire.messages import (
    Abort,
    Demoted,
    Digests,
    EndOfData,
    Fin,
    Heartbeat,
    Hello,
    Message,
    Phase,
    Readmitted,
    Ready,
    Repair,
    TransportOrder,
    TransportReport,
)
from blast_transport.wire.transports import Traits

if TYPE_CHECKING:
    from blast_transport.credentials.admission import AgentConnection
    from blast_transport.wire.joining import Join

_WAKES = 4096
_MAX_RANGES = 10_000
"""Blocks held beyond these ranges are received again: Ready has to stay short."""
_VERDICT_SECONDS = 2.0
_LINGER_BYTES = 1 << 16
_ALIVE_SECONDS = 0.2
_STAY_SECONDS = 0.01
"""Time for which a transport may read on unasked: to wake for each read costs more than the read."""
_TIMEOUT_SECONDS = 3.0
"""Time for a lost sender to reconnect."""


@dataclass(frozen=True, slots=True)
class HostResources:
    """Resources that the sessions of a host share.

    `target_of` makes the target that a Hello names, or refuses it; `emit` receives the outcome of sessions.
    `interface_address`: of this host on the optical network, None without one. With `fsync` data is on disk before it
    is confirmed. `connect` connects to neighbors in a pipeline. `engine` verifies and stores data (`base/engines.py`).
    """

    target_of: Callable[[Hello], Target]
    emit: Callable[[ReceiverEvent], None]
    interface_address: str | None
    fsync: bool = True
    max_rate: float | None = None
    timings: ReceiverTimings = field(default_factory=ReceiverTimings)
    open_group: GroupOpener = open_group_socket
    connect: Dialer = dial
    engine: str = AUTO


class ReceiverSession:
    """Session of `hello` over `sock`; `peer` names the other side.

    Raises TransportError for what cannot be received here.
    """

    def __init__(self, sock: socket.socket, hello: Hello, peer: str, surroundings: HostResources) -> None:
        self.hello, self.peer = hello, peer
        self._around = surroundings
        now = time.monotonic()
        suite = suite_named(hello.suite)
        self._first = sock
        self._alive_at = now + _ALIVE_SECONDS
        # By the numbers of their phases: one that another has followed may still bring what was under way.
        self._transports: dict[int, tuple[Traits, ReceivingTransport]] = {}
        self._completing = False
        self._words: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._good = False
        self._done = Event()
        # A refusal must not leak descriptors: unauthenticated clients can cause any number of refusals.
        with ExitStack() as undo:
            self._selector = undo.enter_context(selectors.DefaultSelector())
            self._wake_reader, self._wake_writer = map(undo.enter_context, socket.socketpair())
            for end in (self._wake_reader, self._wake_writer):
                end.setblocking(False)
            self._selector.register(self._wake_reader, selectors.EVENT_READ, self._woken)
            self._link = SenderLink(sock, self._selector, self._receive, _TIMEOUT_SECONDS if hello.owner else 0.0)
            key = self._link.connection.hidden(hello.session, hello.key)
            sealer = Sealer(key) if key else None
            target = surroundings.target_of(hello)
            undo.callback(target.discard, resumable=hello.resumable)
            self._store = open_store(surroundings.engine, hello.layout, suite, target, self._sign_of_life, hello.holes)
            self._assembly = open_assembly(self._store, sealer)
            self._core = ReceiverCore(hello, self._assembly, time.monotonic(), surroundings.timings)
            undo.pop_all()
        held = self._store.held
        self._started, self._resumed = now, held.held - count_held(held, hello.holes)

    def _sign_of_life(self) -> None:
        """Send a heartbeat: checking the data of an earlier session may take longer than an invitation waits."""
        if time.monotonic() >= self._alive_at:
            self._alive_at = time.monotonic() + _ALIVE_SECONDS
            self._link.send([Heartbeat(self.hello.session, 0)])

    def run(self) -> bool:
        """Receive to the end; return whether the connection can carry another session."""
        lost = False
        try:
            self._link.send([self._ready()])
            while not self._core.over or self._link.awaited:
                self._advance()
                for key, _ in self._selector.select(self._timeout()):
                    key.data()
                self._core.tick(time.monotonic())
                self._link.check(time.monotonic())
        except TransportError as error:
            # Its core has failed already where the fault was the store's.
            self._core.fail(sentence(error))
            lost = True
        finally:
            self._core.fail("the receiver failed")
            try:
                self._end()
            finally:
                # The rest of a partial message would be read as the first message of another session.
                torn = lost or self._link.connection.halfway
                self._good = self._send_verdict() and not torn
                if torn:
                    self._linger()
                self._done.set()
                self._link.release()
        return self._good and self._link.connection.socket is self._first

    def rejoin(self, connection: AgentConnection) -> bool:
        """Continue over this connection; return whether it can carry another session. Thread-safe."""
        self._call(lambda: self._go_on(connection.sock))
        self._done.wait()
        if self._link.connection.socket is not connection.sock:
            return self.verdict.rejoin(connection)
        return self._good

    @property
    def verdict(self) -> SessionVerdict:
        """Return the state that remains after the session."""
        fins = (message for message in self._core.outbox if isinstance(message, Fin))
        return SessionVerdict(self.hello.owner, (self._ready(), *fins))

    def stop(self, reason: str) -> None:
        """End the session soon and report the reason to the sender. May be called from any thread."""
        self._call(lambda: self._core.fail(reason))

    def join(self, connection: AgentConnection, join: Join) -> None:
        """Assign a neighbor's connection.

        May be called from any thread. Raises RemoteProtocolError if no phase expects it.
        """
        try:
            _, transport = self._transports[join.phase]
        except KeyError:
            raise RemoteProtocolError(f"phase {join.phase} of session {join.session} does not run here") from None
        transport.join(connection.sock, join)

    # ------------------------------------------------------------------------------------------- what comes

    def _receive(self) -> None:
        for message in self._link.receive():
            if message.session == self.hello.session:
                self._take(message, time.monotonic())

    def _take(self, message: Message, now: float) -> None:
        core = self._core
        match message:
            case Phase():
                self._take_phase(message, now)
            case Repair():
                core.repaired_by(self._assembly.repair(message.pieces) if core.receiving else 0, now)
            case Digests():
                self._store.expect(message.first, message.digests)
                core.heartbeat(0, now)
                core.stored(now)
            case Heartbeat():
                core.heartbeat(message.sent, now)
            case TransportOrder():
                core.heartbeat(0, now)
                if message.phase in self._transports:
                    _, transport = self._transports[message.phase]
                    transport.receive_order(message.body)
                    self._take_events(transport)
            case Demoted() | Readmitted():
                (core.demoted if isinstance(message, Demoted) else core.promoted)(now)
            case EndOfData():
                if self.hello.owner and message.digest == core.digest:
                    core.heartbeat(0, now)
                    return
                if core.state is not ReceiverState.RECEIVING:
                    raise RemoteProtocolError("EndOfData a second time")
                self._assembly.settle(message.size)
                core.end_of_data(message, now)
            case Abort():
                core.fail(message.reason)
            case _:
                raise RemoteProtocolError(f"{type(message).__name__} is not for a receiver")

    def _woken(self) -> None:
        with suppress(BlockingIOError):
            self._wake_reader.recv(_WAKES)
        while not self._words.empty():
            self._words.get()()
        for _, transport in self._transports.values():
            self._take_events(transport)

    # ---------------------------------------------------------------------------------------------- transports

    def _take_phase(self, phase: Phase, now: float) -> None:
        reason = ""
        self._leave(phase.traits)
        try:
            transport = new_receiver(phase, self._context())
            if transport is not None:
                self._enter(phase, transport)
        except RemoteProtocolError:
            raise
        except (OSError, TransportError) as error:
            reason = f"cannot follow to the {phase.transport} transport: {sentence(error)}"
        self._core.phase(phase, now, reason)
        with suppress(OSError):
            self._link.connection.expedite(by_light=phase.traits.windowed)

    def _context(self) -> ReceivingContext:
        around = self._around
        return ReceivingContext(
            self._assembly,
            around.connect,
            around.interface_address,
            self._own_address(),
            around.open_group,
            self._wake,
            self._woken_at,
        )

    def _enter(self, phase: Phase, transport: ReceivingTransport) -> None:
        self._transports[phase.number] = phase.traits, transport
        if transport.descriptor is not None:
            self._selector.register(transport.descriptor, selectors.EVENT_READ, partial(self._work, phase.number))

    def _work(self, number: int) -> None:
        if number in self._transports:  # A message of the same moment may have put it away.
            _, transport = self._transports[number]
            transport.permit(self._core.light_end)
            if not (self._link.awaited or self._link.connection.has_output):
                now = time.monotonic()
                transport.stay(now + min(_STAY_SECONDS, self._timeout() or 0.0), self._core.until_credit)
            transport.work()
            self._take_events(transport)

    def _leave(self, following: Traits) -> None:
        """Prepare the next phase: the previous transport may still deliver, or has delivered, its data."""
        for traits, transport in self._transports.values():
            if not traits.repairs_itself:
                transport.permit(self._core.light_end)
                transport.drain()
                self._take_events(transport)
            elif following.repairs_itself:
                transport.close("another chain takes over")
        self._put_away()

    def _put_away(self) -> None:
        """Close the transports that lose data; the receiver requests what they did not deliver."""
        for number, (traits, transport) in list(self._transports.items()):
            if not traits.repairs_itself:
                del self._transports[number]
                if transport.descriptor is not None:
                    self._selector.unregister(transport.descriptor)
                transport.close("its phase is over")

    def _take_events(self, transport: ReceivingTransport) -> None:
        for event in transport.events():
            if isinstance(event, StoreLost):
                raise StoreError(event.reason)
            match event:
                case SegmentsArrived():
                    self._core.arrived(event, time.monotonic())
                case StatusReport(phase, body):
                    self._core.outbox.append(TransportReport(self.hello.session, phase, body))
                case _:
                    self._core.progressed(time.monotonic())

    # --------------------------------------------------------------------------------------------- the end

    def _complete(self) -> None:
        """Check the whole and make it good; in a thread, for it may take long."""
        reason = ""
        try:
            self._store.commit(self._core.digest, fsync=self._around.fsync)
        except (OSError, TransportError) as error:
            reason = f"cannot complete {self._store.target.place}: {sentence(error)}"
        self._call(lambda: self._completed(reason))

    def _completed(self, reason: str) -> None:
        if reason:
            self._core.fail(reason)
        else:
            self._core.committed()

    def _end(self) -> None:
        core, store, hello = self._core, self._store, self.hello
        self._put_away()
        for _, transport in self._transports.values():
            transport.close("the session has ended")
        # Transports refer to this session: the cycle would keep the memory until garbage collection.
        self._transports.clear()
        complete = core.state is ReceiverState.COMPLETE
        store.discard(resumable=hello.resumable and not complete and not self._completing)
        if not complete:
            self._around.emit(Failed(hello.session, self.peer, hello.name, core.reason))
            return
        began = self._started if core.first_datagram is None else core.first_datagram
        self._around.emit(
            Received(
                session=hello.session,
                sender=self.peer,
                file=store.target.place,
                bytes=store.layout.size or 0,
                digest=core.digest.hex(),
                seconds=time.monotonic() - began,
                repaired_bytes=core.repaired,
                duplicates=self._assembly.duplicates,
                first_datagram=core.first_datagram,
                resumed_blocks=self._resumed,
                refused=self._assembly.refused + store.corrupt,
                durable=store.durable,
                engine=store.engine,
            )
        )

    def _send_verdict(self) -> bool:
        """Send the verdict and wait for its delivery; return whether the connection is still usable."""
        self._close_selector()
        connection, sock = self._link.connection, self._link.connection.socket
        try:
            for message in self._core.outbox:
                connection.send(message)
            sock.settimeout(_VERDICT_SECONDS)
            connection.drain()
            sock.settimeout(None)
        except (OSError, TransportError):
            return False
        return True

    def _linger(self) -> None:
        """Read what the sender still sends until it closes: unread data would reset the connection (RFC 1122)."""
        sock, give_up = self._link.connection.socket, time.monotonic() + _VERDICT_SECONDS
        with suppress(OSError):
            sock.shutdown(socket.SHUT_WR)
            while (left := give_up - time.monotonic()) > 0:
                sock.settimeout(left)
                if not sock.recv(_LINGER_BYTES):
                    return

    def _close_selector(self) -> None:
        self._selector.close()
        self._wake_reader.close()
        self._wake_writer.close()

    # --------------------------------------------------------------------------------------------- the loop

    def _ready(self) -> Ready:
        return Ready(
            session=self.hello.session,
            held=tuple(islice(self._store.held.ranges(), _MAX_RANGES)),
            receive_buffer=receive_buffer(),
            max_rate=self._around.max_rate,
            early=self._store.target.in_order,
            phase=self._core.phase_number,
            coding=self._core.assembly.decodes,
        )

    def _go_on(self, sock: socket.socket) -> None:
        """Continue after the sender has reconnected: send Ready and the messages that were not sent."""
        self._link.change(sock)
        self._core.outbox.insert(0, self._ready())
        self._core.come_again(time.monotonic())

    def _call(self, word: Callable[[], None]) -> None:
        if self._done.is_set():
            return
        self._words.put(word)
        self._wake()

    def _wake(self) -> None:
        with suppress(OSError):
            self._wake_writer.send(b"\0")

    def _own_address(self) -> str | None:
        """Return the address of this host that the sender, or the leader of the rack, reaches."""
        sock = self._link.connection.socket
        return sock.getsockname()[0] if sock.family in (socket.AF_INET, socket.AF_INET6) else None

    def _woken_at(self) -> tuple[int, int]:
        return self._wake_reader.fileno(), self._link.connection.socket.fileno()

    def _timeout(self) -> float | None:
        deadlines = [at for at in (self._core.deadline(), self._link.deadline()) if at is not None]
        return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None

    def _advance(self) -> None:
        """Complete the target if possible, and send queued messages."""
        core = self._core
        if wrong := self._assembly.take_wrong():
            core.wrong(wrong, time.monotonic())
        if core.state is ReceiverState.COMMITTING and not self._completing:
            # All data is here: later arrivals would be counted after Fin.
            self._put_away()
            start_thread("completing", self._complete)
            self._completing = True
        if self._link.awaited:
            core.cut_off()
        else:
            # Check for heartbeats of the sender as often as this end sends them.
            if core.outbox and self._link.brings():
                core.heartbeat(0, time.monotonic())
            self._link.send(core.outbox)
            core.outbox.clear()
