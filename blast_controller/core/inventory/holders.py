"""Holders of elements, and the state in which they hold them.

| state | taken | kept | reclaimed | released | freed |
|---|---|---|---|---|---|
| free | held | – | – | – | – |
| held | – | kept lit | – | leaving | free |
| kept lit | – | – | held | leaving | – |
| leaving | – | – | – | leaving | free |

A fiber check takes elements and frees them. An element that a reservation takes while it is leaving is leaving at once:
it returned because its circuits could not be removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from types import MappingProxyType

from blast_controller.core.model.errors import CoreError, ImpossibleTransitionError
from blast_controller.core.model.identifiers import ElementId

PROBER = 0
"""Holds what is being probed; reservations count from 1."""


class HolderState(Enum):
    """The state in which an element is held."""

    FREE = "free"
    HELD = "held"
    KEPT_LIT = "kept lit"
    LEAVING = "leaving"
    PROBED = "probed"


_S = HolderState


class DoubleBookingError(CoreError):
    """Our fault: an element was about to be held by two reservations."""


class Holders:
    """Exact accounting of elements. Changes nothing but itself."""

    def __init__(self) -> None:
        self._holders: dict[ElementId, int] = {}
        self._standings: dict[ElementId, HolderState] = {}
        self._leaving: set[int] = set()

    @property
    def holders(self) -> Mapping[ElementId, int]:
        """Return the reservation that holds each element, or PROBER."""
        return MappingProxyType(self._holders)

    def standing(self, element: ElementId) -> HolderState:
        """Return the state of an element."""
        return self._standings.get(element, _S.FREE)

    def take(self, elements: Iterable[ElementId], holder: int) -> None:
        """Assign elements to `holder`.

        Raises DoubleBookingError, with nothing changed, if another holder has one of them.
        """
        requested = list(elements)
        for element in requested:
            if (other := self._holders.get(element, holder)) != holder:
                raise DoubleBookingError(f"{element} is held by reservation {other}, wanted by {holder}")
        standing = _S.PROBED if holder == PROBER else _S.LEAVING if holder in self._leaving else _S.HELD
        self._holders.update(dict.fromkeys(requested, holder))
        self._standings.update(dict.fromkeys(requested, standing))

    def free(self, elements: Iterable[ElementId]) -> None:
        """Free elements."""
        for element in elements:
            self._must_be_able(element, "freed", _S.HELD, _S.LEAVING, _S.PROBED)
            del self._holders[element], self._standings[element]

    def keep(self, elements: Iterable[ElementId]) -> None:
        """Keep elements lit for their holder, which releases them on demand."""
        for element in elements:
            self._must_be_able(element, "kept", _S.HELD)
            self._standings[element] = _S.KEPT_LIT

    def reclaim(self, elements: Iterable[ElementId]) -> None:
        """Mark kept elements as held again: their holder uses them, or will release them."""
        for element in elements:
            self._must_be_able(element, "reclaimed", _S.KEPT_LIT)
            self._standings[element] = _S.HELD

    def release(self, holder: int, elements: Iterable[ElementId]) -> None:
        """Mark a reservation as leaving: its elements no longer serve its part but are not free yet."""
        self._leaving.add(holder)
        for element in elements:
            self._must_be_able(element, "released", _S.HELD, _S.KEPT_LIT, _S.LEAVING)
            self._standings[element] = _S.LEAVING

    def forget(self, holder: int) -> None:
        """Forget a released reservation."""
        self._leaving.discard(holder)

    def _must_be_able(self, element: ElementId, event: str, *standings: HolderState) -> None:
        if (standing := self.standing(element)) not in standings:
            raise ImpossibleTransitionError("element", f"{standing.value} ({element})", event)
