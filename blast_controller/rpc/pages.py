"""Pages of requests, for `listRequests`: which ones a client wants to see, and as many as do not take long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blast_api import ttypes
from blast_controller.core.controller import Core
from blast_controller.core.model.part_states import PartState
from blast_controller.core.snapshot.facts import RequestFacts
from blast_controller.rpc import convert
from blast_controller.rpc.convert import state_number
from blast_controller.runtime.runtime import PublishedState

LARGEST_PAGE = 1000
MAX_ON_A_PAGE = 100
"""The limit of requests on a page, whatever the client requests: describing and encoding blocks other clients."""
MAX_HOSTS_ON_A_PAGE = 3700
"""A status names each receiver up to four times, and a reply must stay below the frame cap of 1 MiB."""
MAX_WAITING_ON_A_PAGE = 64
"""The limit of parts on a page whose causes of waiting are computed, which blocks other clients."""
MAX_LOOKED_AT = 10_000
"""Requests that are looked at for one page, whether the filter accepts them or not."""
LONGEST_CURSOR = 18
"""Decimal digits of any number below 2**60; longer text is not a cursor of ours."""


@dataclass(frozen=True, slots=True)
class PageQuery:
    """A query of requests: tenant (None: all), states, limit, and first arrival."""

    tenant: str | None
    states: frozenset[PartState]
    limit: int
    after: int


def to_page_query(
    filter_: ttypes.RequestFilter | None, limit: int | None, cursor: str | None, tenant: str | None
) -> PageQuery:
    """Validate a client's query of the requests of `tenant`. Raises Rejected."""
    if limit is None or not 1 <= limit <= LARGEST_PAGE:
        raise ttypes.Rejected("bad_limit", f"The limit must be between 1 and {LARGEST_PAGE}.")
    if cursor and not (cursor.isdecimal() and len(cursor) <= LONGEST_CURSOR):
        raise ttypes.Rejected("bad_cursor", "The cursor is invalid: use one that this server returned.")
    accepted = filter_.states if filter_ is not None else None
    states = frozenset(s for s in PartState if accepted is None or state_number(s) in accepted)
    return PageQuery(tenant, states, limit, int(cursor or 0))


@dataclass(frozen=True, slots=True)
class Page:
    """An encoded page with its requests; the causes of the parts in `waiting` are still to be computed."""

    answer: ttypes.RequestPage
    requests: Sequence[RequestFacts]
    waiting: int

    def with_reasons(self, core: Core, now: float) -> ttypes.RequestPage:
        """Return the page with the causes of waiting parts."""
        for request, status in zip(self.requests, self.answer.requests, strict=True):
            for part, part_status in zip(request.parts, status.parts, strict=True):
                part_status.reason = core.reason(request.current, part, now)
        return self.answer


def page(look: PublishedState, query: PageQuery) -> Page:
    """Return the requests that a client wants to see, in order of arrival; fewer where more would take long."""
    every = look.snapshot.requests.after(query.after)
    own = (request for request in every if query.tenant in (None, request.current.tenant))
    found: list[RequestFacts] = []
    hosts, waiting, last, max_count = 0, 0, query.after, min(query.limit, MAX_ON_A_PAGE)
    cursor = None
    for looked, request in enumerate(own):
        full = len(found) == max_count or hosts > MAX_HOSTS_ON_A_PAGE or waiting > MAX_WAITING_ON_A_PAGE
        if full or looked >= MAX_LOOKED_AT:
            cursor = str(last)
            break
        last = request.arrival
        if request.state in query.states:
            found.append(request)
            # A margin takes about as many bytes as a receiver.
            hosts += len(request.current.receivers) + len(request.parts)
            waiting += request.waiting
    statuses = [convert.status(request, look, lambda part: part.reason, max_margins=1) for request in found]
    return Page(ttypes.RequestPage(statuses, cursor, convert.stale(look), look.sequence), found, waiting)
