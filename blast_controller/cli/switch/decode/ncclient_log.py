r"""Messages of NETCONF in a log of the Python library ncclient.

    2026-11-29 12:02:18,405 INFO ncclient.transport.ssh: [host ocs1 session-id 2] Sending:
    b'\n#232\n<?xml version="1.0" encoding="UTF-8"?><nc:rpc xmlns:nc= ... </nc:rpc>\n##\n'
    2026-11-29 12:02:18,506 DEBUG ncclient.transport.ssh: [host ocs1 session-id 2] Received:
    <?xml version="1.0" encoding="UTF-8"?><rpc-reply xmlns= ... </rpc-reply>

A sent message is logged as Python writes bytes, with its framing; a received one as text, at the level DEBUG only. That
level repeats messages in other entries, so only these two kinds of entries are read.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from blast_controller.cli.switch.decode.netconf_text import (
    CUT_OFF,
    TOO_LONG,
    Finding,
    FoundMessage,
    NetconfTextScanner,
    StrayText,
)
from blast_controller.cli.switch.decode.transcript import MAX_TEXT_MESSAGE

ENTRY = re.compile(rb"\[(?:host \S{1,256} )?session(?:-id)? \S{1,64}\] ")
"""The text by which an entry of ncclient about a session is known."""
_MAX_LINE = 4 * MAX_TEXT_MESSAGE
"""Bytes of a line: Python writes a byte that is not printable as four characters."""
_SENDING = re.compile(rb"\] Sending:\s*\Z")
_RECEIVED = re.compile(rb"\] Received:\s*\Z")


class NcclientLogScanner:
    """A scanner of a log, with the interface of `NetconfTextScanner`."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._searched = 0
        self._sends = False
        self._received: NetconfTextScanner | None = None
        """The message that is being read. None: none."""

    def feed(self, data: bytes) -> Iterator[Finding]:
        """Return the findings that `data` completes."""
        self._line += data
        while (end := self._line.find(b"\n", self._searched)) >= 0:
            line = bytes(self._line[: end + 1])
            del self._line[: end + 1]
            self._searched = 0
            yield from self._take(line)
        self._searched = len(self._line)
        if len(self._line) > _MAX_LINE:
            yield StrayText(bytes(self._line), TOO_LONG)
            self._line.clear()
            self._searched = 0

    def finish(self) -> Iterator[Finding]:
        """Return the findings at the end."""
        yield from self.feed(b"\n")
        if self._received is not None:
            yield from self._received.finish()

    def _take(self, line: bytes) -> Iterator[Finding]:
        if self._sends:
            self._sends = False
            yield from _logged_bytes(line.strip())
        elif self._received is not None and not ENTRY.search(line):
            yield from self._continue(self._received, line)
        else:
            if self._received is not None:
                yield from self._received.finish()
            self._sends = _SENDING.search(line) is not None
            self._received = NetconfTextScanner() if _RECEIVED.search(line) else None

    def _continue(self, received: NetconfTextScanner, line: bytes) -> Iterator[Finding]:
        for found in received.feed(line):
            yield found
            if isinstance(found, FoundMessage):
                self._received = None


def _logged_bytes(line: bytes) -> Iterator[Finding]:
    try:
        sent = ast.literal_eval(line.decode("ascii"))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        sent = None
    if not isinstance(sent, bytes):
        yield StrayText(line, CUT_OFF)
        return
    scanner = NetconfTextScanner()
    yield from scanner.feed(sent)
    yield from scanner.finish()
