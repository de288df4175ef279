"""The emulated switch's side of TL1: bytes to requests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tl1_driver.protocol.payload import parameters, split_blocks, unquote
from tl1_driver.protocol.scanner import COMMAND, Scanner, SegmentEnd

COMMAND_LIMIT = 8192
"""Bytes of a command; the client sends no longer ones."""


@dataclass(frozen=True, slots=True)
class ReceivedCommand:
    """A command as it arrived; `text` is all of it, for the echo. The CTAG of one without is "0"."""

    text: str
    verb: str
    aid: str = ""
    ctag: str = "0"
    tid: str = ""
    payload: tuple[str, ...] = ()

    @property
    def settings(self) -> dict[str, str]:
        """The `NAME=value` pairs of the payload, names in capitals."""
        return {name: value for block in self.payload for name, value in parameters(block).items()}


class RequestReader:
    """Cuts what a client sends into requests; line ends between them and inside them do not count."""

    def __init__(self) -> None:
        self._scanner = Scanner()
        self._begun = b""
        self._too_long = False

    def feed(self, data: bytes) -> Iterator[ReceivedCommand]:
        """Yield the requests that `data` completes; a request that is too long has no verb."""
        self._scanner.push(data)
        while (segment := self._scanner.next_segment(COMMAND, COMMAND_LIMIT)) is not None:
            self._begun += segment.text
            self._too_long |= len(self._begun) > COMMAND_LIMIT or segment.end is SegmentEnd.TOO_LONG
            if self._too_long:
                self._begun = b""
            if segment.end is SegmentEnd.SEMICOLON:
                text = self._begun.decode("utf-8", "backslashreplace").strip()
                self._begun, self._too_long = b"", False
                yield _request(text)


def _request(text: str) -> ReceivedCommand:
    fields = split_blocks(text)
    verb, tid, aid, ctag = [*fields, "", "", ""][:4]
    return ReceivedCommand(
        text, verb.strip().upper(), unquote(aid), ctag.strip() or "0", unquote(tid), tuple(fields[5:])
    )
