"""How an executor asks the driver for a value that it does not find on its host."""

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

TOKEN, WANT, DIGEST = "Blast-Token", "Blast-Want", "Blast-Digest"


class Want(StrEnum):
    """What is asked for: a copy on this host; another, because the first is not to be found; the bytes themselves."""

    COPY = "copy"
    ANOTHER = "another"
    BYTES = "bytes"


_SILENCE_SECONDS = 120.0
"""The driver says something at least every ten seconds, once it has a place for whoever asks."""
_TRIES = 3
_STEP = 1 << 20


class Place(NamedTuple):
    """Where the driver listens, and what it wants to be shown."""

    host: str
    port: int
    token: str


class Answer(Enum):
    """What the driver says."""

    LOOK_AGAIN = "look"
    GONE = "gone"


class Unanswered(Exception):
    """The driver cannot be reached, or did not keep to what it said."""


def ask(place: Place, name: str, want: Want) -> Answer:
    """Ask that it be brought to this host's agent, and wait until it could be there. Raises Unanswered."""
    while True:
        answer = _tried(place, name, want, None)
        if answer is not None:
            return answer


def fetch(place: Place, name: str, into: Path) -> Answer | None:
    """Take it from the driver, into a new file; None when it is there. Raises Unanswered, and OSError of the file."""
    return _tried(place, name, Want.BYTES, into)


def _tried(place: Place, name: str, want: Want, into: Path | None) -> Answer | None:
    error: Exception | None = None
    for _ in range(_TRIES):
        try:
            return _once(place, name, want, into)
        except _OfTheFile as raised:
            raise raised.error from None
        except (http.client.HTTPException, OSError) as raised:
            error = raised
    raise Unanswered(f"no answer from the driver at {place.host}:{place.port}: {error or 'it hung up'}")


def _once(place: Place, name: str, want: Want, into: Path | None) -> Answer | None:
    """None: later, or it is in the file."""
    connection = http.client.HTTPConnection(place.host, place.port, timeout=_SILENCE_SECONDS)
    with closing(connection):
        connection.request("GET", f"/{name}", headers={TOKEN: place.token, WANT: want})
        with connection.getresponse() as response:
            match response.status:
                case HTTPStatus.GONE:
                    return Answer.GONE
                case HTTPStatus.NO_CONTENT:
                    return Answer.LOOK_AGAIN
                case HTTPStatus.ACCEPTED:
                    return None
                case HTTPStatus.OK if into is not None:
                    _save(response.read, response.headers, into)
                    return None
            raise http.client.HTTPException(f"it says {response.status}")


class _OfTheFile(Exception):
    """Trying again would not help."""

    def __init__(self, error: OSError) -> None:
        self.error = error


def _save(read: Callable[[int], bytes], headers: http.client.HTTPMessage, into: Path) -> None:
    left, digest = int(headers["Content-Length"]), hashlib.blake2b()
    try:
        file = into.open("wb")
    except OSError as error:
        raise _OfTheFile(error) from error
    with file:
        while left and (piece := read(min(left, _STEP))):
            digest.update(piece)
            left -= len(piece)
            try:
                file.write(piece)
            except OSError as error:
                raise _OfTheFile(error) from error
    if left or not hmac.compare_digest(digest.hexdigest(), headers[DIGEST] or ""):
        raise http.client.HTTPException("it broke off" if left else "other bytes came than were sent")
