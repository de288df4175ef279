"""The shell of a core's downstream half: connects to the successor, and pours data and messages into it."""

from __future__ import annotations

import select
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from blast_transport.base.errors import ForgottenError, RemoteError
from blast_transport.transports.pipeline.connections.closing_connections import ClosingConnections
from blast_transport.transports.pipeline.connections.dialling import Dialler, LivenessProbes, join_message
from blast_transport.transports.pipeline.connections.link import Link
from blast_transport.transports.pipeline.connections.pump import Outlet
from blast_transport.transports.pipeline.protocol.downstream import Downstream
from blast_transport.transports.pipeline.protocol.events import (
    BytesLost,
    BytesNoLongerHeld,
    BytesSent,
    CloseDownstream,
    Command,
    Connect,
    Event,
    FromSuccessor,
    ProbeNodes,
    SendDownstream,
    Serve,
    SuccessorLost,
)
from blast_transport.transports.pipeline.protocol.messages import Held
from blast_transport.transports.pipeline.protocol.phase import PipelinePhase

_IN, _OUT = select.POLLIN, select.POLLOUT
_PIECES_PER_STEP = 8
"""Pieces before other work is done, so that neither waits long."""

T = TypeVar("T")


class Connections(NamedTuple):
    """Creation of new connections, and closing of old ones."""

    dialler: Dialler
    probes: LivenessProbes
    closing: ClosingConnections


class Successor:
    """Connection to the next node. `notify` passes events to the core; not thread-safe."""

    def __init__(
        self,
        phase: PipelinePhase,
        down: Downstream,
        outlet: Outlet,
        notify: Callable[[Event], None],
        connections: Connections,
    ) -> None:
        self._outlet = outlet
        self._phase = phase
        self._down = down
        self._handle = notify
        self._dialler = connections.dialler
        self._probes = connections.probes
        self._closing = connections.closing
        self._link: Link | None = None
        self._offset = 0

    def obey(self, command: Command) -> None:
        """Execute a command that concerns the successor."""
        match command:
            case Connect(place):
                self._drop()
                self._connect(place)
            case ProbeNodes(places):
                for place in places:
                    self._probes.send(place, self._phase.chain[place])
            case Serve(offset):
                self._offset = offset
                self._probes.recall()
            case SendDownstream(message) if self._link is not None:
                self._guard(lambda link: link.send(message))
            case CloseDownstream():
                self._drop()

    def watch(self, poll: select.poll, limit: int) -> None:
        """Register for `poll`; data before `limit` could be sent."""
        if self._link is not None:
            pours = self._link.has_output or (self._down.serving and self._offset < limit)
            poll.register(self._link.socket, _IN | (_OUT if pours else 0))

    @property
    def pending(self) -> bool:
        """Return whether data is buffered that poll does not report."""
        return self._link is not None and self._link.pending

    @property
    def sent(self) -> int:
        """Return the offset before which data has left, or was left out."""
        return self._offset

    @property
    def promised(self) -> int:
        """Return the offset before which data has left, or was announced."""
        return self._offset + (0 if self._link is None else self._link.promised)

    def listen(self) -> None:
        """Pass the successor's messages to the core."""
        while (link := self._link) is not None:
            message = self._guard(lambda link: link.receive())
            if link is not self._link or message is None:
                if self._link is link and link.payload:
                    self._lost("broke the protocol: a successor sent data")
                return
            self._handle(FromSuccessor(message))

    def pour(self, limit: int) -> None:
        """Send what can be sent now, data up to `limit`. Raises what the outlet raises about its own side."""
        for _ in range(_PIECES_PER_STEP):
            link = self._link
            if link is None or not (link.has_output or self._down.serving):
                return
            if self._pour_once(limit) == 0:
                return

    def _pour_once(self, limit: int) -> int:
        stop = self._offset
        if self._down.serving:
            if passed := self._pass_over(limit):
                return passed
            stop = self._down.skips.data_stop(self._offset, limit)
        try:
            sent = self._guard(lambda link: link.give(self._outlet, self._offset, stop))
        except ForgottenError as error:
            self._forgot(error.first_held)
            return 0
        if not sent:
            return 0
        self._offset += sent
        if self._down.serving:
            self._handle(BytesSent(self._offset))
        return sent

    def _pass_over(self, limit: int) -> int:
        """Omit data before `limit` that every receiver holds, and notify the successor; return the omitted bytes."""
        offset, stop = self._offset, self._down.skips.pass_over(self._offset, limit)
        # Announced data has to be sent before any other message.
        if stop == offset or self.promised > offset:
            return 0
        self._guard(lambda link: link.send(Held(stop)))
        self._offset = stop
        if self._down.serving:
            self._handle(BytesSent(stop))
        return stop - offset

    def _forgot(self, first_held: int) -> None:
        """Close the connection if data was announced, which must precede other messages.

        A new connection can name another offset.
        """
        if self.promised > self._offset:
            self._drop_now()
            self._handle(BytesLost())
        else:
            self._handle(BytesNoLongerHeld(first_held))

    def close(self) -> None:
        """Close the connection now."""
        self._dialler.cancel()
        self._probes.recall()
        self._drop_now()

    def _connect(self, place: int) -> None:
        self._dialler.dial(self._phase.chain[place], self._connected, self._lost)
        self._probes.await_silence(place, lambda: self._lost(f"no heartbeat for {self._phase.timings.probe:g} s", True))

    def _connected(self, link: Link) -> None:
        self._link = link
        self._guard(lambda link: link.send(join_message(self._phase)))

    def _guard(self, action: Callable[[Link], T]) -> T | None:
        """Do something with the link; one that is of no more use is lost."""
        assert self._link is not None
        try:
            return action(self._link)
        except RemoteError as error:
            self._lost(str(error))
            return None

    def _lost(self, reason: str, unanswered: bool = False) -> None:
        self._dialler.cancel()
        self._probes.cancel()
        self._drop_now()
        self._handle(SuccessorLost(reason, unanswered))

    def _drop(self) -> None:
        self._dialler.cancel()
        self._probes.cancel()
        if self._link is not None:
            link, self._link = self._link, None
            self._closing.add(link)

    def _drop_now(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None
