"""Updates to all open pages: collected over a short interval, and encoded once for all pages with the same view."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from threading import Lock

from blast_controller.core.observer import Observer
from blast_controller.core.snapshot.changes import EVERYTHING, NOTHING, Changes
from blast_controller.core.snapshot.snapshot import Snapshot
from blast_controller.history.encoder import Difference, Encoder
from blast_controller.history.moment import Moment

GATHERED = 0.05
"""Seconds for which changes come together."""
LINGER = 60.0
"""Seconds for which everything is kept encoded after the last page was closed: one that is loaded again is whole at
once."""
MAX_EVENTS = 128
"""The queue limit of a slow page; beyond it events are dropped and the complete state is sent again."""
MAX_PAGES, MAX_PAGES_PER_ACCOUNT, PAGES_FOR_OPERATORS = 64, 16, 8
"""Open pages of all, of one account, and those of all that only operators may open."""

Audience = str | None
"""The tenant to whose things a page is limited; None: it is shown all."""


class PageLimitError(Exception):
    """The limit of open pages is reached."""


class PageListener:
    """One page with its queue; a slow page never blocks others."""

    def __init__(self, audience: Audience, account: Hashable = None) -> None:
        self.audience, self.account = audience, account
        self.needs_whole = True
        self.ended = False
        self._events: deque[bytes] = deque()
        self._there = asyncio.Event()

    def put(self, event: bytes) -> None:
        """Queue an event."""
        if len(self._events) >= MAX_EVENTS:
            self._events.clear()
            self.needs_whole = True
        self._events.append(event)
        self._there.set()

    def end(self, event: bytes) -> None:
        """Queue the last event."""
        self.put(event)
        self.ended = True

    async def get(self) -> list[bytes]:
        """Return all that there is to be sent, as soon as there is anything."""
        await self._there.wait()
        self._there.clear()
        found, self._events = list(self._events), deque()
        return found


class LiveBroadcast(Observer):
    """An observer of the runtime, which takes a note; everything else happens on the loop of the HTTP server."""

    def __init__(self, snapshot: Callable[[], Snapshot], opening: Mapping[str, object]) -> None:
        self._snapshot = snapshot
        self._opening = dict(opening)
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changes = NOTHING
        self._watched = False
        self._encoder = Encoder()
        self._listeners: set[PageListener] = set()
        self._left_at = 0.0

    @property
    def pages(self) -> int:
        """Return the number of open pages."""
        return len(self._listeners)

    # --------------------------------------------------------------------------------- on the deciding thread

    def on_published(self, snapshot: Snapshot, changes: Changes) -> None:
        """Note what has changed."""
        if not self._watched:
            return
        with self._lock:
            is_first = self._changes == NOTHING
            self._changes |= changes
        if is_first and self._loop is not None:
            self._loop.call_soon_threadsafe(self._send_soon)

    # --------------------------------------------------------------------------------------------- on the loop

    def open(self, audience: Audience, account: Hashable = None, is_operator: bool = True) -> PageListener:
        """Open a page and return its listener. Raises PageLimitError."""
        limit = MAX_PAGES if is_operator else MAX_PAGES - PAGES_FOR_OPERATORS
        if len(self._listeners) >= limit:
            raise PageLimitError(f"{limit} pages are open, the limit: close one.")
        if sum(listener.account == account for listener in self._listeners) >= MAX_PAGES_PER_ACCOUNT:
            raise PageLimitError(f"Your account has {MAX_PAGES_PER_ACCOUNT} open pages, its limit: close one.")
        self._loop = asyncio.get_running_loop()
        if not self._watched:
            # From here on changes are noted: none is missed between this and the first look.
            self._watched = True
            self._encoder = Encoder()
            self._encode(EVERYTHING)
        listener = PageListener(audience, account)
        self._listeners.add(listener)
        return listener

    def close(self, listener: PageListener) -> None:
        """Remove a closed page."""
        self._listeners.discard(listener)
        self._left_at = time.monotonic()

    def whole(self, audience: Audience) -> bytes:
        """Return the complete state for this audience, as of the latest update."""
        owners = self._encoder.owners
        rows = ((name, row) for name, row in self._encoder.rows.items() if _may_see(audience, owners.get(name)))
        return _event("whole", {**self._opening, "clock": _clock()}, rows)

    def vitals(self, build: Callable[[Audience], Mapping[str, object]]) -> None:
        """Send the vital signs to all pages, built by `build` for each audience."""
        if self._watched and not self._listeners and time.monotonic() - self._left_at > LINGER:
            self._watched, self._encoder = False, Encoder()
        by_audience: dict[Audience, bytes] = {}
        for listener in self._listeners:
            audience = listener.audience
            if audience not in by_audience:
                by_audience[audience] = event_of("vitals", build(audience))
            listener.put(by_audience[audience])

    def end(self, sentence: str) -> None:
        """Announce the server's end to every page. From any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._send_last, sentence)

    def _send_last(self, sentence: str) -> None:
        for listener in self._listeners:
            listener.end(event_of("goodbye", {"message": sentence}))

    def _send_soon(self) -> None:
        assert self._loop is not None
        self._loop.call_later(GATHERED, self._send)

    def _send(self) -> None:
        with self._lock:
            changes, self._changes = self._changes, NOTHING
        if not self._watched:
            return
        difference = self._encode(changes)
        if not difference:
            return
        owners, by_audience = self._encoder.owners, dict[Audience, bytes]()
        for listener in self._listeners:
            audience = listener.audience
            if audience not in by_audience:
                rows = [(name, row) for name, row in difference.items() if _may_see(audience, owners.get(name))]
                by_audience[audience] = _event("changes", {"clock": _clock()}, rows) if rows else b""
            if by_audience[audience] and not listener.needs_whole:
                listener.put(by_audience[audience])

    def _encode(self, changes: Changes) -> Difference:
        # The latest snapshot may include later changes, whose own update is then empty.
        return self._encoder.encode(Moment(self._snapshot(), time.monotonic(), time.time(), changes))


def event_of(kind: str, value: Mapping[str, object]) -> bytes:
    """Return a server-sent event (WHATWG HTML, section 9.2)."""
    return f"event: {kind}\ndata: {json.dumps(value, separators=(',', ':'))}\n\n".encode()


def _event(kind: str, head: Mapping[str, object], rows: Iterable[tuple[str, str | None]]) -> bytes:
    """Return a server-sent event with rows, which are JSON already.

    JSON has no line ends except in strings, where it escapes them.
    """
    return f"event: {kind}\ndata: ".encode() + joined_rows(head, rows) + b"\n\n"


def joined_rows(head: Mapping[str, object], rows: Iterable[tuple[str, str | None]]) -> bytes:
    """Return a JSON object with `rows` behind the rest of it, which are JSON already; None: such a row is gone."""
    joined = ",".join(f"{json.dumps(name)}:{row or 'null'}" for name, row in rows)
    start = json.dumps(head, separators=(",", ":"))[:-1]
    return f'{start},"rows":{{{joined}}}}}'.encode("utf-8", "replace")


def _clock() -> dict[str, float]:
    return {"now": round(time.monotonic(), 3), "wall": round(time.time(), 3)}


def _may_see(audience: Audience, owner: str | None) -> bool:
    return audience is None or owner is None or owner == audience
