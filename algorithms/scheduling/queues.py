"""Waiting jobs, each in the queues of resources that block it (after the watched literals of SAT solvers).

A job that cannot start is in just enough queues to guarantee that it cannot start while all of them stay closed. So a
freed resource concerns its own queue only, and the cost of an event depends on the resources that it frees, not on the
number of waiting jobs. Queues are heaps; entries of departed jobs are dropped when they come up.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

Token = tuple[str, Hashable, int]
"""A resource: ("port", switch, vertex), ("pool", switch, leaves), ("hold", held part, 0), ("tenant", name, pieces), and
NEW for jobs that have not been tried yet.
"""

NEW: Token = ("new", 0, 0)

Rank = tuple[int, float]
"""(minus priority, key): the smallest goes first."""

Entry = tuple[Rank, int, int]
"""(rank, the job's place in order of arrival, number of the registration)"""


SHORT = 64
"""Queues below this length are not worth compacting."""


@dataclass(slots=True)
class _Registration:
    number: int
    rank: Rank
    tokens: set[Token]


class Queues:
    """Waiting jobs by the resources that block them, and a walk over unblocked jobs in the order of rank."""

    def __init__(self) -> None:
        self._queues: dict[Token, list[Entry]] = {}
        self._compact_at: dict[Token, int] = {}
        self._registrations: dict[int, _Registration] = {}
        self._numbers = 0
        self._heads: list[tuple[Entry, Token]] = []

    def put(self, place: int, rank: Rank, tokens: Iterable[Token]) -> None:
        """Register the job at this place with this rank until one of `tokens` opens."""
        self._numbers += 1
        self._registrations[place] = _Registration(self._numbers, rank, set())
        self.move(place, tokens)

    def move(self, place: int, tokens: Iterable[Token]) -> None:
        """Replace the tokens that the job waits for; common ones keep their entries."""
        registration = self._registrations[place]
        before, registration.tokens = registration.tokens, set(tokens)
        entry = (registration.rank, place, registration.number)
        for token in registration.tokens - before:
            queue = self._queues.setdefault(token, [])
            heapq.heappush(queue, entry)
            if len(queue) > self._compact_at.get(token, SHORT):
                self._compact(token)

    def re_rank(self, place: int, rank: Rank) -> None:
        """Change the rank of a job in its queues."""
        registration = self._registrations[place]
        if registration.rank != rank:
            self.put(place, rank, registration.tokens)

    def drop(self, place: int) -> None:
        """Remove the job from all queues."""
        self._registrations.pop(place, None)

    def start(self, tokens: Iterable[Token]) -> None:
        """Begin a walk over the queues of `tokens`, or add them to the current walk."""
        for token in tokens:
            self._raise_head(token)

    def next(self, is_open: Callable[[Token], bool], rank: Callable[[int], Rank]) -> int | None:
        """Return the place of the best job whose resource is still open, or None at the end of the walk.

        `rank` returns the present rank of the job at a place. A rank that has risen since its registration is renewed
        only when the job comes up. The caller then moves the job or drops it.
        """
        while self._heads:
            entry, token = heapq.heappop(self._heads)
            if not self._is_current(entry, token):
                self._raise_head(token)
            elif not is_open(token):
                heapq.heappush(self._queues.setdefault(token, []), entry)
            elif (present := rank(entry[1])) > entry[0]:
                self.re_rank(entry[1], present)
                self._raise_head(token)
            else:
                self._raise_head(token)
                self._registrations[entry[1]].tokens.discard(token)
                return entry[1]
        return None

    def _raise_head(self, token: Token) -> None:
        queue = self._queues.get(token)
        while queue:
            entry = heapq.heappop(queue)
            if self._is_current(entry, token):
                heapq.heappush(self._heads, (entry, token))
                return
        self._queues.pop(token, None)

    def _is_current(self, entry: Entry, token: Token) -> bool:
        registration = self._registrations.get(entry[1])
        return registration is not None and registration.number == entry[2] and token in registration.tokens

    def _compact(self, token: Token) -> None:
        queue = sorted({entry for entry in self._queues[token] if self._is_current(entry, token)})
        self._queues[token] = queue
        self._compact_at[token] = max(SHORT, 2 * len(queue))
