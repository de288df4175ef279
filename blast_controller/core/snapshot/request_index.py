"""The requests of a snapshot, to be found by name and in order of arrival."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeVar

from immutables import Map, MapMutation

from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import RequestKey
from blast_controller.core.snapshot.facts import RequestFacts

BUNCH = 64
"""Requests whose arrivals are kept together."""

K = TypeVar("K")
V = TypeVar("V")


class RequestIndex(NamedTuple):
    """Requests by name and in order of arrival.

    `arrivals` has their names by number of arrival, in bunches; `waiting` is the number of waiting parts of each
    tenant, and `states` the number of requests in each state.
    """

    by_name: Map[RequestKey, RequestFacts] = Map()
    arrivals: Map[int, Map[int, RequestKey]] = Map()
    waiting: Map[str, int] = Map()
    states: Map[PartState, int] = Map()

    def with_changes(self, changed: Mapping[RequestKey, RequestFacts | None]) -> RequestIndex:
        """Return the same, but for these requests, of which None are known no longer."""
        if not changed:
            return self
        by_name, arrivals = self.by_name.mutate(), self.arrivals.mutate()
        waiting, states = self.waiting.mutate(), self.states.mutate()
        for name, new in changed.items():
            old = by_name.get(name)
            renew(by_name, name, new)
            if old is None or new is None or old.arrival != new.arrival:
                _set_arrival(arrivals, old, None)
                _set_arrival(arrivals, new, name)
            if more := (new.waiting if new else 0) - (old.waiting if old else 0):
                renew(waiting, name[0], waiting.get(name[0], 0) + more or None)
            _count_state(states, old, -1)
            _count_state(states, new, 1)
        return RequestIndex(by_name.finish(), arrivals.finish(), waiting.finish(), states.finish())

    def after(self, arrival: int) -> Iterator[RequestFacts]:
        """Yield the requests behind this number, in order of arrival."""
        for bunch in sorted(number for number in self.arrivals if number >= arrival // BUNCH):
            names = self.arrivals[bunch]
            yield from (self.by_name[names[number]] for number in sorted(names) if number > arrival)


def _set_arrival(
    arrivals: MapMutation[int, Map[int, RequestKey]], request: RequestFacts | None, name: RequestKey | None
) -> None:
    if request is not None:
        number = request.arrival
        bunch = arrivals.get(number // BUNCH, Map())
        after = bunch.set(number, name) if name is not None else bunch.delete(number)
        renew(arrivals, number // BUNCH, after or None)


def _count_state(states: MapMutation[PartState, int], request: RequestFacts | None, more: int) -> None:
    if request is not None:
        renew(states, request.state, states.get(request.state, 0) + more or None)


def renew(things: MapMutation[K, V], key: K, value: V | None) -> None:
    """Let a key have a value, or (None) not be there."""
    if value is not None:
        things[key] = value
    elif key in things:
        del things[key]
