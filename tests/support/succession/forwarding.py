"""Connections of ToRs to controllers: what stands in for the driver's server, and ToRs that connect again and again."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from blast_controller.openflow.vocabulary import Connected, Input, Lost, Numbered, PortState
from tests.support.succession.scheduler import Process, Scheduler
from tests.support.succession.tor import Channel, ModelledTor
from tests.support.succession.wire import Link, Wire

BACKOFF = 1.0
"""Seconds between two tries of a ToR to connect."""
SILENCE = (4.0, 9.0)
"""Seconds after which a connection without a sign of life is given up, by either side."""


class ModelledServer:
    """As `openflow.server.Server`: one thread that hears of everything in turn."""

    def __init__(self, scheduler: Scheduler, process: Process, modules: dict[str, Any]) -> None:
        self.port = 6653
        self.loop = self
        self.process = process
        self.deliver: Callable[[Input], None] | None = None
        self.sessions: set[ModelledSession] = set()
        self._scheduler = scheduler
        self._queue = modules["queue"].SimpleQueue()

    def start(self, _: object, deliver: Callable[[Input], None]) -> None:
        self.deliver = deliver
        self._scheduler.spawn(self.process, self._run)

    def _run(self) -> None:
        while True:
            self._queue.get()()

    def soon(self, work: Callable[[], None]) -> None:
        self._queue.put(work)

    def settle(self, connection: object) -> None:
        """Nobody is a stranger here."""

    def call_at(self, moment: float, work: Callable[[], None]) -> Alarm:
        alarm = Alarm(moment)
        self._scheduler.at(moment, lambda: None if alarm.is_off else self.soon(work))
        return alarm

    def stop(self) -> None:
        for session in list(self.sessions):
            session.hang_up()

    def hear(self, happened: Input) -> None:
        """Something has come from a ToR."""
        assert self.deliver is not None
        deliver = self.deliver
        self.soon(lambda: deliver(happened))


class Alarm:
    """As asyncio.TimerHandle."""

    def __init__(self, moment: float) -> None:
        self._moment = moment
        self.is_off = False

    def when(self) -> float:
        return self._moment

    def cancel(self) -> None:
        self.is_off = True


class ModelledSession:
    """The controller's end of a ToR's connection."""

    _numbers = itertools.count(1)

    def __init__(
        self, scheduler: Scheduler, server: ModelledServer, tor: ModelledTor, link: Link, latency: Any
    ) -> None:
        self.address = (f"tor{tor.datapath}", next(self._numbers))
        self.names: frozenset[tuple[str, str]] = frozenset()
        self._scheduler, self._server, self._tor, self._link = scheduler, server, tor, link
        self._to_tor, self._to_us = Wire(scheduler, link, latency), Wire(scheduler, link, latency)
        self.channel = Channel(self, self._answer)
        self.is_open = True
        tor.channels.append(self.channel)
        server.sessions.add(self)
        server.hear(Connected(self, tor.datapath, tuple(PortState(port, True) for port in range(1, 200)), self.names))

    def transmit(self, messages: tuple[Numbered, ...]) -> bool:
        if not self.is_open:
            return False
        for message in messages:
            self._to_tor.send(lambda message=message: self._arrive(message))
        return True

    def hang_up(self) -> None:
        """The controller closes it: what it has sent still arrives."""
        if self.is_open:
            self._close_here()
            self._to_tor.send(lambda: self._tor.close(self.channel))

    def lose(self) -> None:
        """Both sides find out that it is dead, what is on its way is lost."""
        self._tor.close(self.channel)
        self._close_here()

    def process_ended(self) -> None:
        """The controller is gone; what it has sent still arrives, and then the end."""
        self.is_open = False
        self._to_tor.send(lambda: self._tor.close(self.channel))

    def _close_here(self) -> None:
        if self.is_open:
            self.is_open = False
            self._server.sessions.discard(self)
            self._server.hear(Lost(self, "its connection was closed"))

    def _arrive(self, message: Numbered) -> None:
        if self.channel.is_open:
            self._tor.hear(self.channel, message)

    def _answer(self, answer: Input) -> None:
        self._to_us.send(lambda: self._server.hear(answer) if self.is_open else None)
