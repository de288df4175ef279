"""Trees kept lit between two requests: an iterative job that asks again for its group finds its light still there.

What an idle reservation holds counts as free. Who needs a piece of it takes it, and the rest is released; who asks for
the same group again, from the same sender and as the same tenant, gets it as it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from blast_controller.core.ledger import Ledger
from blast_controller.core.requests import MulticastRequest, Part
from blast_controller.core.reservation import Reservation
from blast_controller.core.reservation_states import ReservationEvent
from blast_controller.core.reservations import Reservations
from blast_controller.core.settings import CoreSettings
from blast_controller.core.static_tree import StaticLight
from blast_controller.core.timers import Cool, Timers

_Group = tuple[str, str, frozenset[str]]
"""(tenant, sender, receivers)"""


class WarmTrees:
    """Finds idle reservations by their group, and lets go of them."""

    def __init__(self, ledger: Ledger, reservations: Reservations, timers: Timers, settings: CoreSettings) -> None:
        self.settings = settings
        self._ledger = ledger
        self._reservations = reservations
        self._timers = timers
        self._kept: defaultdict[_Group, list[int]] = defaultdict(list)
        self._until: dict[int, float] = {}

    def keep(self, reservation: Reservation, request: MulticastRequest, now: float) -> bool:
        """Keep what a part that is done leaves behind, if that can serve again; whether it is kept."""
        tree = reservation.layout.tree
        if not self.settings.keep_warm or reservation.busy or reservation.unlit:
            return False
        if tree is None or isinstance(tree, StaticLight):
            return False
        self.lay_by(reservation, request, now)
        return True

    def lay_by(self, reservation: Reservation, request: MulticastRequest, now: float) -> None:
        """Leave a lit tree whose part goes without light to whoever needs it, the part itself included."""
        self._reservations.keep(reservation)
        self._remember(reservation, _group(request, reservation.layout.receivers), now)

    def adopt(self, reservation: Reservation, request: MulticastRequest | None, now: float) -> None:
        """Take over an idle reservation of an earlier run; nobody could find one whose request is forgotten."""
        if request is None or not self.settings.keep_warm:
            self._reservations.release(reservation, ReservationEvent.NEEDED)
        else:
            self._remember(reservation, _group(request, reservation.layout.receivers), now)

    def find(self, request: MulticastRequest, part: Part) -> Reservation | None:
        """The tree that is kept for exactly these receivers; None if there is none that devices are done with."""
        numbers = self._kept.get(_group(request, part.receivers), ())
        found = (self._reservations.live[number] for number in numbers)
        return next((kept for kept in found if not (kept.at_work or kept.unlit)), None)

    def light_again(self, reservation: Reservation, request: MulticastRequest, part: Part) -> None:
        """Let a tree that was found serve this part."""
        self._forget(reservation.id)
        self._reservations.ask_again(reservation, request.id, part.index)

    def hand_over(self, elements: Collection[str]) -> frozenset[int]:
        """Release the trees that hold any of these elements, for somebody who takes them now; returns which."""
        lenders = frozenset(self._ledger.lenders_of(elements))
        for number in lenders:
            self._forget(number)
            self._reservations.hand_over(self._reservations.live[number], elements)
        return lenders

    def give_up(self, number: int) -> None:
        """Release a tree that has a bad piece, or that nobody has asked for in a while."""
        self._forget(number)
        self._reservations.release(self._reservations.live[number], ReservationEvent.NEEDED)

    def note_released(self, reservation: Reservation) -> None:
        """A tree has gone bad and is kept no longer."""
        self._forget(reservation.id)

    def cool(self, deadline: Cool) -> None:
        """A tree has been idle for as long as it may, unless it was asked for in between."""
        if self._until.get(deadline.reservation) == deadline.at:
            self.give_up(deadline.reservation)

    def _remember(self, reservation: Reservation, group: _Group, now: float) -> None:
        until = now + self.settings.keep_warm
        self._kept[group].append(reservation.id)
        self._until[reservation.id] = until
        self._timers.add(until, Cool(reservation.id, until))

    def _forget(self, number: int) -> None:
        if self._until.pop(number, None) is not None:
            for group in [group for group, numbers in self._kept.items() if number in numbers]:
                self._kept[group].remove(number)
                if not self._kept[group]:
                    del self._kept[group]


def _group(request: MulticastRequest, receivers: tuple[str, ...]) -> _Group:
    return request.tenant, request.sender, frozenset(receivers)
