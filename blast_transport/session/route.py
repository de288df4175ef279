"""Transport of a transfer over time: light trees that are granted and end, a pipeline, unicast.

The owner of the grants updates a `Route` from any thread; the sending thread follows it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from blast_transport.base.frozen_record import FrozenRecord
from blast_transport.transports.choices import OpticalChoice, OpticalPause, TransportChoice


class GiveUp(FrozenRecord):
    """End the transfer, in one sentence."""

    reason: str


class Improve(FrozenRecord):
    """Go on by this, if what is gone by now is of its kind."""

    choice: TransportChoice


Order = TransportChoice | Improve | GiveUp


class Route:
    """Choice of transports for one transfer.

    `first` is the initial transport; `reached`: all bytes before this offset have left. `otherwise` is the transport
    without a light tree, and after a failure of the sender's optical interface, which ends the transfer if there is
    none. `broken` is the reason of that failure until the next try; if several tries fail, the transfer sets
    `no_more_light`, and the sending thread calls `on_broken`. Every method may be called from any thread.
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
        """Use this transport from now on, or extend the present grant."""
        self._order(choice)

    def go_otherwise(self) -> None:
        """Use `otherwise`, which must be given."""
        with self._lock:
            assert self.otherwise is not None
            self._order(self.otherwise)

    def improve(self, choice: TransportChoice) -> None:
        """Offer a better choice of this kind.

        It replaces `otherwise`, and the present transport, if they are of the kind.
        """
        with self._lock:
            if isinstance(self.otherwise, type(choice)):
                self.otherwise = choice
            self._order(Improve(choice))

    def replace(self, failed: TransportChoice, instead: TransportChoice) -> None:
        """Use another choice instead of `otherwise` if that has failed, and would fail again."""
        with self._lock:
            if self.otherwise == failed:
                self.otherwise = instead

    def start_optical(self, light: OpticalChoice) -> None:
        """Use a light tree, from now on or for longer."""
        self._order(light)

    def stop_optical(self) -> None:
        """Stop using the light tree until `start_optical`."""
        self._order(OpticalPause())

    def give_up(self, reason: str) -> None:
        """End the transfer as failed, in one sentence."""
        self._order(GiveUp(reason))

    def take_order(self) -> Order | None:
        """Return the next change; None if there is none."""
        return self._orders.popleft() if self._orders else None

    def light_broke(self, reason: str) -> None:
        """Record that the sender's optical interface failed for good; `reason` is one sentence."""
        self.broken, self.no_more_light = reason, True
        self.on_broken()

    def _order(self, order: Order) -> None:
        self._orders.append(order)
        self.wake()
