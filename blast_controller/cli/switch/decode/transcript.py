"""A decoder of transcripts: bytes in, records out. A record has its `kind` and is printed as one JSON object."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Protocol

Record = dict[str, object]

UNPARSED_BYTES = 200
"""Bytes of text without meaning that a record repeats: a line or two, enough to find them in the transcript."""
MAX_TEXT_MESSAGE = 4 << 20
"""Bytes of one message, as the drivers accept them; longer text is reported and left out."""


class TranscriptProtocol(StrEnum):
    """The protocol of a transcript."""

    TL1 = "tl1"
    NETCONF = "netconf"
    REDIS = "redis"
    GNMI = "gnmi"


class TranscriptDecoder(Protocol):
    """A decoder of one transcript."""

    def feed(self, data: bytes) -> Iterable[Record]:
        """Return the records that `data` completes."""

    def finish(self) -> Iterable[Record]:
        """Return the records at the end of the transcript."""


def unparsed(raw: bytes, error: str) -> Record:
    """Return the record of text that cannot be read.

    Parameters
    ----------
    raw : bytes
        The text; the record has its beginning.
    error : str
        Reason.

    Returns
    -------
    Record
        A record of the kind `unparsed`.
    """
    return {"kind": "unparsed", "lines": plain_text(raw[:UNPARSED_BYTES]).splitlines(), "error": error}


def plain_text(raw: bytes) -> str:
    """Return bytes as text; bytes that are not UTF-8 are escaped."""
    return raw.decode("utf-8", "backslashreplace")


class OutsideText:
    """The beginning of the text between two messages, collected in pieces."""

    def __init__(self) -> None:
        self._beginning = b""

    def add(self, text: bytes) -> None:
        """Add a piece."""
        piece = text if self._beginning else text.lstrip()
        self._beginning += piece[: UNPARSED_BYTES - len(self._beginning)]

    def take(self) -> bytes:
        """Return the beginning without white space around it, and forget it."""
        text, self._beginning = self._beginning.strip(), b""
        return text
