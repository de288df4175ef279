"""Who holds which element, and on what terms.

| standing | taken | kept | reclaimed | released | freed |
|---|---|---|---|---|---|
| free | held | – | – | – | – |
| held | – | kept lit | – | leaving | free |
| kept lit | – | – | held | – | – |
| leaving | – | – | – | – | free |

A fiber check takes elements and frees them. What a reservation takes while it is leaving is leaving at once: it has
come back to it, because its circuits could not be taken away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from types import MappingProxyType

from blast_controller.core.model.errors import CoreError, ImpossibleTransition
from blast_controller.core.model.identifiers import ElementId

PROBER = 0
"""Holds what is being probed; reservations count from 1."""


class Standing(Enum):
    """How somebody has an element."""

    FREE = "free"
    HELD = "held"
    KEPT_LIT = "kept lit"
    LEAVING = "leaving"
    PROBED = "probed"


_S = Standing


class DoubleBooked(CoreError):
    """Our fault: an element was about to be held by two reservations."""


class Custody:
    """Exact accounting of elements. Changes nothing but itself."""

    def __init__(self) -> None:
        self._holders: dict[ElementId, int] = {}
        self._kept_lit: set[ElementId] = set()
        self._leaving: set[int] = set()

    @property
    def holders(self) -> Mapping[ElementId, int]:
        """The reservation that holds each element, or PROBER."""
        return MappingProxyType(self._holders)

    def standing(self, element: ElementId) -> Standing:
        """How somebody has it."""
        holder = self._holders.get(element)
        if holder is None:
            return _S.FREE
        if holder == PROBER:
            return _S.PROBED
        if element in self._kept_lit:
            return _S.KEPT_LIT
        return _S.LEAVING if holder in self._leaving else _S.HELD

    def take(self, elements: Iterable[ElementId], holder: int) -> None:
        """Let `holder` have elements. Raises DoubleBooked, with nothing changed, if another one has one of them."""
        wanted = list(elements)
        for element in wanted:
            if (other := self._holders.get(element, holder)) != holder:
                raise DoubleBooked(f"{element} is held by reservation {other}, wanted by {holder}")
        self._holders.update(dict.fromkeys(wanted, holder))

    def free(self, elements: Iterable[ElementId]) -> None:
        """Elements are given back."""
        for element in elements:
            self._must_be_able(element, "freed", _S.HELD, _S.LEAVING, _S.PROBED)
            del self._holders[element]

    def keep(self, elements: Iterable[ElementId]) -> None:
        """Their holder keeps them lit, and gives them up when somebody needs them."""
        for element in elements:
            self._must_be_able(element, "kept", _S.HELD)
            self._kept_lit.add(element)

    def reclaim(self, elements: Iterable[ElementId]) -> None:
        """Their holder has a use for them again, or is about to give them up."""
        for element in elements:
            self._must_be_able(element, "reclaimed", _S.KEPT_LIT)
            self._kept_lit.remove(element)

    def release(self, holder: int) -> None:
        """A reservation is on its way out: what it has is neither its part's any longer nor free yet."""
        self._leaving.add(holder)

    def forget(self, holder: int) -> None:
        """A reservation is gone."""
        self._leaving.discard(holder)

    def _must_be_able(self, element: ElementId, event: str, *standings: Standing) -> None:
        if (standing := self.standing(element)) not in standings:
            raise ImpossibleTransition("element", f"{standing.value} ({element})", event)
