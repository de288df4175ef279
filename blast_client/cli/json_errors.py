"""Standard error of a command with --json: a line of JSON instead of each line of text.

The last line before a failure is `{"error": message, "status": exit status}`, with the `code` of a rejection; all other
lines are `{"note": message}`. Each line is therefore held until the next line or the end.
"""

from __future__ import annotations

import io
import sys

from blast_base.command_line import FAILED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

OPTION = "--json"


def run_with_json_errors(run: Callable[[], int]) -> int:
    """Run a command with standard error as lines of JSON, and return its exit status."""
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
    """A text stream that converts lines to JSON and holds the last one. `code`: that of a rejection, or None."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._begun = ""
        self._held: str | None = None
        self._as_text = False
        self.code: str | None = None

    def as_text(self) -> None:
        """Pass all further text through unchanged."""
        self._as_text = True

    def write(self, text: str) -> int:
        """Write complete lines as JSON."""
        if self._as_text:
            return self._stream.write(text)
        *lines, self._begun = (self._begun + text).split("\n")
        for line in filter(None, lines):
            self._emit({})
            self._held = line
        return len(text)

    def writable(self) -> bool:
        """Return True."""
        return True

    def isatty(self) -> bool:
        """Return False for JSON, which must not contain progress bars."""
        return self._as_text and self._stream.isatty()

    def fileno(self) -> int:
        """Return the descriptor of the stream, which child processes write to directly."""
        return self._stream.fileno()

    def end(self, status: int) -> None:
        """Write the last line, for the exit status of the command."""
        if self._begun:
            self.write("\n")
        code = {} if self.code is None else {"code": self.code}
        self._emit({"status": status, **code} if status else {})

    def _emit(self, failure: dict[str, object]) -> None:
        # Commands without --json do not import it.
        from json import dumps

        held, self._held = self._held, None
        if held is not None:
            line = {"error" if failure else "note": _sentence(held), **failure}
            self._stream.write(f"{dumps(line, ensure_ascii=False)}\n")
            self._stream.flush()


def _sentence(line: str) -> str:
    """Return a line without the prefix of the command."""
    name, colon, sentence = line.partition(": ")
    return sentence if colon and name.startswith("blast") and "'" not in name else line
