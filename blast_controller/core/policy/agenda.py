"""What the next decision looks at, besides the requests that have changed."""

from __future__ import annotations

from collections.abc import Iterable

from algorithms.scheduling.job import PartName
from blast_controller.core.model.requests import RequestKey
from blast_controller.core.policy.dispatcher import PartView


class Agenda:
    """Requests to look at again, and parts whose lease is over and that compete anew."""

    def __init__(self) -> None:
        self._again: dict[RequestKey, None] = {}
        self._over: dict[PartName, PartView] = {}

    def look_again(self, requests: Iterable[RequestKey]) -> None:
        """Something has changed for these, and not of them."""
        self._again |= dict.fromkeys(requests)

    def take_requests(self) -> list[RequestKey]:
        """Those to look at again, in order; they are not any more."""
        again, self._again = self._again, {}
        return list(again)

    @property
    def leases_over(self) -> frozenset[PartName]:
        """The parts whose lease is over, by request and slot."""
        return frozenset(self._over)

    def end_leases(self, parts: Iterable[PartView]) -> None:
        """The leases of these are over."""
        self._over |= {part.name: part for part in parts}

    def take_leases(self) -> list[PartView]:
        """The parts whose lease is over; the next decision is about others."""
        over, self._over = self._over, {}
        return list(over.values())
