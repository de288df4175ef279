"""The timeline of the page: the recording, read in workers beside its writer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from blast_controller.history.differences import differences
from blast_controller.history.errors import NothingRecordedError, RecordingError
from blast_controller.history.reader import RecordingReader
from blast_controller.ops.http.access import HttpAccess
from blast_controller.ops.live.broadcast import joined_rows

T = TypeVar("T")
Answer = dict[str, object]

BUCKETS = 300
"""Of the time bar."""
MAX_READING = 4
"""Readings at a time: each takes some megabytes."""
NOT_RECORDING = "No recording: set file in [recording] and restart the controller to use the timeline."
LIMITED = "The timeline shows all tenants: log in as an operator to use it."


class TimelineReader:
    """Reads the recording in `path`; None: there is none. For the HTTP server's thread."""

    def __init__(self, path: Path | None, access: HttpAccess) -> None:
        self._path = path
        self._access = access
        self._places = asyncio.Semaphore(MAX_READING)
        self._lock = threading.Lock()
        self._reader: RecordingReader | None = None

    async def past(self, request: Request) -> Response:
        """Return the recorded period and the activity in it."""
        visitor = await self._access.visitor(request)
        if visitor.identity.only_tenant is not None:
            return JSONResponse(_nothing(LIMITED))
        if self._path is None:
            return JSONResponse(_nothing(NOT_RECORDING))
        try:
            return JSONResponse(await self._read(_overview))
        except HTTPException as error:
            return JSONResponse(_nothing(error.detail))

    async def at(self, request: Request) -> Response:
        """Return all rows as they were shown at a time."""
        await self._check(request)
        wall = _moment(request, "wall")
        return Response(await self._read(lambda reader: _at(reader, wall)), media_type="application/json")

    async def changes(self, request: Request) -> Response:
        """Return the differences between two times, one sentence each."""
        await self._check(request)
        begin, end = _moment(request, "from"), _moment(request, "to")
        return JSONResponse(await self._read(lambda reader: _changes(reader, begin, end)))

    async def _check(self, request: Request) -> None:
        visitor = await self._access.visitor(request)
        if visitor.identity.only_tenant is not None:
            raise HTTPException(403, LIMITED)
        if self._path is None:
            raise HTTPException(404, NOT_RECORDING)

    async def _read(self, look: Callable[[RecordingReader], T]) -> T:
        if self._places.locked():
            raise HTTPException(503, "Too many queries of the past: try again in a second.", {"Retry-After": "1"})
        async with self._places:
            try:
                return await asyncio.to_thread(lambda: look(self._opened()))
            except RecordingError as fault:
                status = 404 if isinstance(fault, NothingRecordedError) else 503
                self._let_go()
                raise HTTPException(status, f"{str(fault)[0].upper()}{str(fault)[1:]}.") from None

    def _opened(self) -> RecordingReader:
        assert self._path is not None
        with self._lock:
            if self._reader is None:
                self._reader = RecordingReader(self._path)
            return self._reader

    def _let_go(self) -> None:
        # Open the file again next time: its fault may be repaired by then.
        with self._lock:
            reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()


def _nothing(sentence: str) -> Answer:
    nothing: Answer = {"recording": False, "oldest": 0, "newest": 0, "gaps": [], "activity": []}
    return {**nothing, "message": sentence}


def _overview(reader: RecordingReader) -> Answer:
    span = reader.span()
    oldest, newest = span.oldest.wall, span.newest.wall
    return {
        "recording": True,
        "message": None,
        "oldest": oldest,
        "newest": newest,
        "gaps": [[gap.after, gap.until] for gap in span.gaps],
        "activity": [round(bucket.changes, 1) for bucket in reader.activity(BUCKETS, oldest, newest)],
    }


def _at(reader: RecordingReader, wall: float) -> bytes:
    past = reader.at(wall)
    # Rows are JSON already: a fabric of a thousand racks is not taken apart to be put together again.
    return joined_rows({"clock": {"now": past.now, "wall": past.wall}}, past.rows.items())


def _changes(reader: RecordingReader, begin: float, end: float) -> Answer:
    before, after = reader.at(begin), reader.at(end)
    found = differences(before.rows, after.rows)
    return {
        "changes": [{"wall": after.wall, "name": one.name, "message": one.sentence} for one in found.found],
        "more": found.left_off,
    }


def _moment(request: Request, name: str) -> float:
    try:
        found = float(request.query_params[name])
    except (KeyError, ValueError):
        found = -1.0
    if not 0 <= found < 1e11:
        raise HTTPException(400, f"{name} must be a time in seconds since 1970.")
    return found
