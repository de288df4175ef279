"""By which way the data of a transfer goes: light that comes and goes, a pipeline, unicast.

A `Route` is told by whoever has the grants, from any thread, and followed by the thread that sends.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from blast_transport.transports.choices import Dark, Light, TransportChoice


@dataclass(frozen=True, slots=True)
class GiveUp:
    """End the transfer, in one sentence."""

    reason: str


@dataclass(frozen=True, slots=True)
class Improve:
    """Go on by this, if what is gone by now is of its kind."""

    choice: TransportChoice


Order = TransportChoice | Improve | GiveUp


class Route:
    """The ways of one transfer. `reached`: all bytes of the data before this one have left. `first` is where to begin.

    `otherwise` is where to go on without light, and when our own side of it fails, which ends the transfer where there
    is none. `broken` says then why, until it is tried again; if that is in vain for some times, the transfer has
    `no_more_light`, and `on_broken` was called by the thread that sends. Every method may be called from any thread.
    """

    def __init__(self, first: TransportChoice, otherwise: TransportChoice | None = None) -> None:
        self.first, self.otherwise = first, otherwise
        self.reached = 0
        self.broken = ""
        self.no_more_light = False
        self.wake: Callable[[], None] = lambda: None
        self.on_broken: Callable[[], object] = lambda: None
        self._orders: deque[Order] = deque()
        self._lock = threading.Lock()

    def go(self, choice: TransportChoice) -> None:
        """Go on by this way from now on, or by the same light for longer."""
        self._order(choice)

    def go_otherwise(self) -> None:
        """Go on by `otherwise`, which there has to be."""
        with self._lock:
            assert self.otherwise is not None
            self._order(self.otherwise)

    def improve(self, choice: TransportChoice) -> None:
        """There is a better way of this kind: for now, if such a one is used, and for `otherwise`, if that is one."""
        with self._lock:
            if isinstance(self.otherwise, type(choice)):
                self.otherwise = choice
            self._order(Improve(choice))

    def shine(self, light: Light) -> None:
        """There is light, from now on or for longer."""
        self._order(light)

    def darken(self) -> None:
        """There is no light until `shine`."""
        self._order(Dark())

    def give_up(self, reason: str) -> None:
        """End the transfer as failed, in one sentence."""
        self._order(GiveUp(reason))

    def take_order(self) -> Order | None:
        """The next change; None if there is none."""
        return self._orders.popleft() if self._orders else None

    def light_broke(self, reason: str) -> None:
        """Our own side cannot send by light any more, in one sentence."""
        self.broken, self.no_more_light = reason, True
        self.on_broken()

    def _order(self, order: Order) -> None:
        self._orders.append(order)
        self.wake()
