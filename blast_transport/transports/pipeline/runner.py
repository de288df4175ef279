"""The thread of a node or source: polls, lets its parts work, ends them all, and says so last."""

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
from blast_transport.transports.pipeline.protocol.events import Command, Event, Started, Tell
from blast_transport.transports.pipeline.protocol.phase import Ended, Outcome, PipelineEvent, PipelinePhase, StoreFailed
from blast_transport.transports.pipeline.successor import Connections


class Core(Protocol):
    """What decides. Each method answers with commands."""

    def handle(self, event: Event, now: float) -> list[Command]:
        """Something happened."""

    def leave(self, outcome: Outcome, reason: str) -> list[Command]:
        """Our own side ends it."""

    def tick(self, now: float) -> list[Command]:
        """What is due at `now`."""

    def deadline(self) -> float:
        """When `tick` has something to do at the latest."""


def _to_nobody(_event: PipelineEvent) -> None:
    """Nobody listens any more."""


class Runner(ABC):
    """A thread that ends by itself, or soon after `stop`. `events` is called in it, with `Ended` as the last."""

    def __init__(
        self, phase: PipelinePhase, core: Core, events: Callable[[PipelineEvent], None], connect: Dialer
    ) -> None:
        self.phase = phase
        self._decide = core
        self._events = events
        self._waker = Waker()
        self._closing = ClosingConnections(phase.timings.farewell)
        self._dialler = Dialler(connect, self._waker, phase.timings.answer)
        self._probes = LivenessProbes(connect, self._waker, phase.timings.probe)
        self._connections = Connections(self._dialler, self._probes, self._closing)
        self._ended: Ended | None = None
        self._thread = threading.Thread(target=self._run, name=f"pipeline {phase.chain[phase.index].name}", daemon=True)

    def start(self) -> None:
        """Begin. Raises NoThreadError, and has then given everything back."""
        try:
            start(self._thread)
        except NoThreadError as error:
            self._ended = Ended(Outcome.FAILED, str(error))
            self._close()
            self._waker.close()
            raise

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the end, `timeout` seconds at most; True: it has come."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def stop(self, reason: str) -> None:
        """End it now, whatever it is doing; from any thread."""
        self._waker.post(lambda: self._stop(reason))

    @abstractmethod
    def _obey_one(self, command: Command) -> None:
        """Carry out a command other than an event for the session."""

    @abstractmethod
    def _watch(self, poll: select.poll) -> bool:
        """Register everything; True: something can go on at once."""

    @abstractmethod
    def _waited(self, seconds: float) -> None:
        """For so long nothing happened."""

    @abstractmethod
    def _work(self, ready: dict[int, int], now: float) -> None:
        """Read and write what can be; `ready` are the events by descriptor.

        Raises LocalError when our own side can go on no more.
        """

    @abstractmethod
    def _close(self) -> None:
        """Give everything back."""

    def _tell(self, event: Event) -> None:
        self._obey(self._decide.handle(event, time.monotonic()))

    def _obey(self, commands: Iterable[Command]) -> None:
        for command in commands:
            if not isinstance(command, Tell):
                self._obey_one(command)
            elif isinstance(command.event, Ended):
                self._ended = command.event
            else:
                self._events(command.event)

    def _stop(self, reason: str) -> None:
        if self._ended is None:
            self._obey(self._decide.leave(Outcome.STOPPED, reason))

    def _run(self) -> None:
        try:
            self._tell(Started())
            while self._ended is None:
                self._turn()
        except (TransportError, OSError) as error:
            if isinstance(error, StoreError):
                self._events(StoreFailed(str(error)))
            self._obey(self._decide.leave(Outcome.FAILED, sentence(error)))
            self._ended = Ended(Outcome.FAILED, sentence(error))
        finally:
            self._part()
            self._close()
            self._dialler.cancel()
            self._waker.close()
            # Who hears of us mostly holds us: together we would stay until garbage is collected, with all our memory.
            events, self._events = self._events, _to_nobody
            events(self._ended or Ended(Outcome.FAILED, "an error of the program; see its log"))

    def _turn(self) -> None:
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
        # After what was heard: whoever was stopped himself must not take others for dead.
        self._obey(self._decide.tick(now))
        self._closing.serve(now)

    def _pause(self, seconds: float) -> None:
        """Only say goodbye, and hear who calls."""
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
