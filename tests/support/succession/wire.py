"""One direction of a connection: what is sent arrives in its order, soon or late, and not at all once it is cut off."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.succession.scheduler import Scheduler

Deliver = Callable[[], None]


class Link:
    """The way between two machines: while it `is_cut` nothing gets through, and what was sent waits in it."""

    def __init__(self) -> None:
        self.is_cut = False
        self._held: list[Callable[[], None]] = []

    def cut(self) -> None:
        """From now on nothing gets through."""
        self.is_cut = True

    def heal(self) -> None:
        """What has waited gets through."""
        self.is_cut = False
        held, self._held = self._held, []
        for go_on in held:
            go_on()

    def hold(self, go_on: Callable[[], None]) -> None:
        """Wait until it is healed."""
        self._held.append(go_on)


class Wire:
    """`latency` draws how many seconds a message takes."""

    def __init__(self, scheduler: Scheduler, link: Link, latency: Callable[[], float]) -> None:
        self._scheduler, self._link, self._latency = scheduler, link, latency
        self._last = 0.0

    def send(self, deliver: Deliver, latency: float | None = None) -> None:
        """Have `deliver` called there, after so many seconds if that is said."""
        self._last = max(self._last, self._scheduler.now + (self._latency() if latency is None else latency))
        self._scheduler.at(self._last, lambda: self._arrive(deliver))

    def _arrive(self, deliver: Deliver) -> None:
        if self._link.is_cut:
            self._link.hold(lambda: self.send(deliver))
        else:
            deliver()
