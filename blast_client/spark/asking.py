"""Requests of an executor to the driver for a value that is not on its host."""

from __future__ import annotations

import hashlib
import hmac
import http.client
from collections.abc import Callable
from contextlib import closing
from enum import Enum, StrEnum
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

TOKEN, KIND, DIGEST = "Blast-Token", "Blast-Request", "Blast-Digest"
"""Names of HTTP headers."""


class CopyKind(StrEnum):
    """The kind of a request: a copy on this host, another copy because the first is missing, or the bytes."""

    COPY = "copy"
    ANOTHER = "another"
    BYTES = "bytes"


_SILENCE_SECONDS = 120.0
"""Timeout of an answer; the driver answers within ten seconds once it serves the request."""
_TRIES = 3
"""A driver that is busy may refuse a connection once or twice."""
_STEP = 1 << 20
"""Bytes of one read."""


class DriverAddress(NamedTuple):
    """The address of the driver, and the token that it requires."""

    host: str
    port: int
    token: str


class DriverAnswer(Enum):
    """An answer of the driver."""

    LOOK_AGAIN = "look"
    DESTROYED = "destroyed"


class DriverUnreachableError(Exception):
    """The driver cannot be reached, or violated the protocol."""


def ask(place: DriverAddress, name: str, kind: CopyKind) -> DriverAnswer:
    """Request a copy at this host's agent, and wait for the answer. Raises DriverUnreachableError."""
    while True:
        answer = _tried(place, name, kind, None)
        if answer is not None:
            return answer


def fetch(place: DriverAddress, name: str, into: Path) -> DriverAnswer | None:
    """Fetch a value into a new file; return None for success. Raises DriverUnreachableError, OSError."""
    return _tried(place, name, CopyKind.BYTES, into)


def _tried(place: DriverAddress, name: str, kind: CopyKind, into: Path | None) -> DriverAnswer | None:
    error: Exception | None = None
    for _ in range(_TRIES):
        try:
            return _once(place, name, kind, into)
        except _FileError as raised:
            raise raised.error from None
        except (http.client.HTTPException, OSError) as raised:
            error = raised
    raise DriverUnreachableError(
        f"no answer from the driver at {place.host}:{place.port}: {error or 'the connection closed'}"
    )


def _once(place: DriverAddress, name: str, kind: CopyKind, into: Path | None) -> DriverAnswer | None:
    """Make one request; return None if the value is in the file, or the caller has to ask again."""
    connection = http.client.HTTPConnection(place.host, place.port, timeout=_SILENCE_SECONDS)
    with closing(connection):
        connection.request("GET", f"/{name}", headers={TOKEN: place.token, KIND: kind})
        with connection.getresponse() as response:
            match response.status:
                case HTTPStatus.GONE:
                    return DriverAnswer.DESTROYED
                case HTTPStatus.NO_CONTENT:
                    return DriverAnswer.LOOK_AGAIN
                case HTTPStatus.ACCEPTED:
                    return None
                case HTTPStatus.OK if into is not None:
                    _save(response.read, response.headers, into)
                    return None
            raise http.client.HTTPException(f"status {response.status}")


class _FileError(Exception):
    """An error of the local file, after which a retry is useless."""

    def __init__(self, error: OSError) -> None:
        self.error = error


def _save(read: Callable[[int], bytes], headers: http.client.HTTPMessage, into: Path) -> None:
    left, digest = int(headers["Content-Length"]), hashlib.blake2b()
    try:
        file = into.open("wb")
    except OSError as error:
        raise _FileError(error) from error
    with file:
        while left and (piece := read(min(left, _STEP))):
            digest.update(piece)
            left -= len(piece)
            try:
                file.write(piece)
            except OSError as error:
                raise _FileError(error) from error
    if left or not hmac.compare_digest(digest.hexdigest(), headers[DIGEST] or ""):
        raise http.client.HTTPException("the answer is truncated" if left else "the digest of the answer differs")
