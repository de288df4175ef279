"""Thread of a node or source: polls, runs its parts, ends them, and reports its end last."""

from __future__ import annotations

import select
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Protocol

from blast_transport.base.errors import NoThreadError, StoreError, TransportError, sentence
from blast_transport.base.threads import start
from blast_transport.base.waker import Waker
from blast_transport.links.dialling import Dialer
from blast_transport.transports.pipeline.connections.closing_connections import ClosingConnections
from blast_transport.transports.pipeline.connections.dialling import Dialler, LivenessProbes
from blast_transport.transports.pipeline.protocol.events import Command, Event, Notify, Started
from blast_transport.transports.pipeline.protocol.phase import (
    NodeOutcome,
    PhaseEnded,
    PipelineEvent,
    PipelinePhase,
    StoreFailed,
)
from blast_transport.transports.pipeline.successor import Connections


class PhaseCore(Protocol):
    """Decisions of a node; each method returns commands."""

    def handle(self, event: Event, now: float) -> list[Command]:
        """Handle an event."""

    def leave(self, outcome: NodeOutcome, reason: str) -> list[Command]:
        """Leave because of a local event."""

    def tick(self, now: float) -> list[Command]:
        """Return the commands that are due at `now`."""

    def deadline(self) -> float:
        """Return the latest time for the next `tick`."""


def _ignore_event(_event: PipelineEvent) -> None:
    """Ignore the event."""


class Runner(ABC):
    """Thread that ends by itself, or soon after `stop`. It calls `events`, with `PhaseEnded` as the last."""

    def __init__(
        self, phase: PipelinePhase, core: PhaseCore, events: Callable[[PipelineEvent], None], connect: Dialer
    ) -> None:
        self.phase = phase
        self._decide = core
        self._events = events
        self._waker = Waker()
        self._closing = ClosingConnections(phase.timings.last_message)
        self._dialler = Dialler(connect, self._waker, phase.timings.answer)
        self._probes = LivenessProbes(connect, self._waker, phase.timings.probe)
        self._connections = Connections(self._dialler, self._probes, self._closing)
        self._ended: PhaseEnded | None = None
        self._thread = threading.Thread(target=self._run, name=f"pipeline {phase.chain[phase.index].name}", daemon=True)

    def start(self) -> None:
        """Begin. Raises NoThreadError, and has then given everything back."""
        try:
            start(self._thread)
        except NoThreadError as error:
            self._ended = PhaseEnded(NodeOutcome.FAILED, str(error))
            self._close()
            self._waker.close()
            raise

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the end, `timeout` seconds at most; return true if it has come."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def stop(self, reason: str) -> None:
        """End it now, whatever it is doing; from any thread."""
        self._waker.post(lambda: self._stop(reason))

    @abstractmethod
    def _obey_one(self, command: Command) -> None:
        """Execute a command other than an event for the session."""

    @abstractmethod
    def _watch(self, poll: select.poll) -> bool:
        """Register all descriptors; return whether something can be done at once."""

    @abstractmethod
    def _waited(self, seconds: float) -> None:
        """Count seconds without any event."""

    @abstractmethod
    def _work(self, ready: dict[int, int], now: float) -> None:
        """Read and write as far as possible; `ready` has the events by descriptor.

        Raise LocalError if this node cannot continue.
        """

    @abstractmethod
    def _close(self) -> None:
        """Give everything back."""

    def _handle(self, event: Event) -> None:
        self._obey(self._decide.handle(event, time.monotonic()))

    def _obey(self, commands: Iterable[Command]) -> None:
        for command in commands:
            if not isinstance(command, Notify):
                self._obey_one(command)
            elif isinstance(command.event, PhaseEnded):
                self._ended = command.event
            else:
                self._events(command.event)

    def _stop(self, reason: str) -> None:
        if self._ended is None:
            self._obey(self._decide.leave(NodeOutcome.STOPPED, reason))

    def _run(self) -> None:
        try:
            self._handle(Started())
            while self._ended is None:
                self._step()
        except (TransportError, OSError) as error:
            if isinstance(error, StoreError):
                self._events(StoreFailed(str(error)))
            self._obey(self._decide.leave(NodeOutcome.FAILED, sentence(error)))
            self._ended = PhaseEnded(NodeOutcome.FAILED, sentence(error))
        finally:
            self._part()
            self._close()
            self._dialler.cancel()
            self._waker.close()
            # The receiver of events usually refers to this object: the cycle would keep all memory until garbage
            # collection.
            events, self._events = self._events, _ignore_event
            events(self._ended or PhaseEnded(NodeOutcome.FAILED, "an error of the program; see its log"))

    def _step(self) -> None:
        poll = select.poll()
        poll.register(self._waker, select.POLLIN)
        self._closing.watch(poll)
        at_once, began = self._watch(poll), time.monotonic()
        wait = 0.0 if at_once else self._decide.deadline() - began
        ready = dict(poll.poll(max(0.0, wait) * 1000))
        if self._waker.fileno() in ready:
            self._waker.run()
        now = time.monotonic()
        self._waited(now - began)
        self._work(ready, now)
        # After the messages: a process that was stopped must not consider others dead.
        self._obey(self._decide.tick(now))
        self._closing.serve(now)

    def _pause(self, seconds: float) -> None:
        """Only close connections, and execute posted calls."""
        poll = select.poll()
        poll.register(self._waker, select.POLLIN)
        self._closing.watch(poll)
        if self._waker.fileno() in dict(poll.poll(seconds * 1000)):
            self._waker.run()
        self._closing.serve(time.monotonic())

    def _part(self) -> None:
        """Let the last words go out, for as long as is allowed."""
        while (limit := self._closing.deadline()) is not None:
            self._pause(max(0.0, limit - time.monotonic()))
