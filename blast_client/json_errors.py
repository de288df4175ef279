"""Standard error of a command with --json: a line of JSON for each line that would be text.

What was said last before a command fails is its error, `{"error": sentence, "status": exit status}`, with `code` where
the controller's refusal had one; everything else is `{"note": sentence}`. So that it is known which is which, a line
leaves when the next one is said, or at the end.
"""

from __future__ import annotations

import io
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

FAILED = 1
OPTION = "--json"


def telling_in_json(run: Callable[[], int]) -> int:
    """Run a command with standard error as lines of JSON; its exit status."""
    before = sys.stderr
    lines = ErrorLines(before)
    status = FAILED
    sys.stderr = lines
    try:
        status = run()
    finally:
        sys.stderr = before
        lines.end(status)
    return status


class ErrorLines(io.TextIOBase):
    """In place of a stream: holds the last line back. `code`: of the refusal that the error is, if it has one."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._begun = ""
        self._held: str | None = None
        self._as_text = False
        self.code: str | None = None

    def as_text(self) -> None:
        """Let everything through as it is, from here on."""
        self._as_text = True

    def write(self, text: str) -> int:
        """Lines that have come to their end."""
        if self._as_text:
            return self._stream.write(text)
        *lines, self._begun = (self._begun + text).split("\n")
        for line in filter(None, lines):
            self._let_go({})
            self._held = line
        return len(text)

    def writable(self) -> bool:
        """So it is."""
        return True

    def isatty(self) -> bool:
        """Whether bars may move here, which they may not in JSON."""
        return self._as_text and self._stream.isatty()

    def fileno(self) -> int:
        """Of the stream: what other processes say there is theirs."""
        return self._stream.fileno()

    def end(self, status: int) -> None:
        """The command has ended so."""
        if self._begun:
            self.write("\n")
        code = {} if self.code is None else {"code": self.code}
        self._let_go({"status": status, **code} if status else {})

    def _let_go(self, failure: dict[str, object]) -> None:
        # Only those who ask for JSON wait until it is loaded.
        from json import dumps

        held, self._held = self._held, None
        if held is not None:
            said = {"error" if failure else "note": _sentence(held), **failure}
            self._stream.write(f"{dumps(said, ensure_ascii=False)}\n")
            self._stream.flush()


def _sentence(line: str) -> str:
    """The line without the name of the command in front."""
    name, colon, sentence = line.partition(": ")
    return sentence if colon and name.startswith("blast") and "'" not in name else line
