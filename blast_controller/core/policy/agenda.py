"""The agenda of the next decision, in addition to changed requests."""

from __future__ import annotations

from collections.abc import Iterable

from algorithms.scheduling.job import PartName
from blast_controller.core.model.requests import RequestKey
from blast_controller.core.policy.dispatcher import PartView


class Agenda:
    """Requests to examine again, and parts with an expired lease that compete again."""

    def __init__(self) -> None:
        self._again: dict[RequestKey, None] = {}
        self._over: dict[PartName, PartView] = {}

    def look_again(self, requests: Iterable[RequestKey]) -> None:
        """Add requests that must be examined because of a change elsewhere."""
        self._again |= dict.fromkeys(requests)

    def take_requests(self) -> list[RequestKey]:
        """Return and clear the requests to examine, in order."""
        again, self._again = self._again, {}
        return list(again)

    @property
    def leases_over(self) -> frozenset[PartName]:
        """Return the parts whose lease is over, by request and slot."""
        return frozenset(self._over)

    def end_leases(self, parts: Iterable[PartView]) -> None:
        """Add parts with an expired lease."""
        self._over |= {part.name: part for part in parts}

    def take_leases(self) -> list[PartView]:
        """Return the parts whose lease is over; the next decision is about others."""
        over, self._over = self._over, {}
        return list(over.values())
