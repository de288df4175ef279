"""Log lines for people (text) or for machines (one JSON object a line), with the fields that a line's author knows.

A line gets its fields from `extra=fields(...)`; the epoch of this run of the controller is added to every line.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import TextIO

from blast_controller.ops.line_budget import LineBudget

FIELDS = "blast_fields"
HIDDEN = "********"
LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")

_PARTIES = ("peer", "tenant", "device")
_ADDRESS = re.compile(r"\[?([0-9A-Fa-f.:]{3,45}?)\]?:\d{1,5}")
LONGEST_MESSAGE = 4_000
"""The limit in characters: peers control parts of messages."""
LONGEST_TRACEBACK = 20_000
LINES_OF_TRACEBACK = 50.0
"""Lines of the log budget that a traceback counts as."""
# With this option json.dumps would create an encoder for each line.
_encoded = json.JSONEncoder(default=str).encode
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def fields(**known: object) -> dict[str, object]:
    """Return the `extra` of a log call: the event's name, its request, reservation and so on; None is left out."""
    return {FIELDS: {name: value for name, value in known.items() if value is not None}}


class _Formatter(logging.Formatter, ABC):
    """`always` stands in every line, `secrets`, also as escaped in JSON, in none."""

    def __init__(self, always: Mapping[str, object], secrets: Collection[str]) -> None:
        super().__init__()
        self.always = always
        self.secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        """Format the line with secrets masked: a device may repeat them in its messages."""
        line = self.line(record)
        for secret in self.secrets:
            line = line.replace(secret, HIDDEN)
        return line

    @abstractmethod
    def line(self, record: logging.LogRecord) -> str:
        """Return the line as it would be if there were no secrets."""

    def fields_of(self, record: logging.LogRecord) -> dict[str, object]:
        """Return the line's fields beside its message."""
        return {**getattr(record, FIELDS, {}), **self.always}


class JsonFormatter(_Formatter):
    """One JSON object a line: time (UTC), level, logger, thread, message, the line's fields, error (a traceback)."""

    def line(self, record: logging.LogRecord) -> str:
        """Return the line. A field cannot hide what every line has."""
        line: dict[str, object] = {
            "time": _utc(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "thread": record.threadName,
            "message": _shortened(record.getMessage(), LONGEST_MESSAGE),
        }
        line = {**line, **self.fields_of(record), **line}
        if record.exc_info:
            line["error"] = _shortened(self.formatException(record.exc_info), LONGEST_TRACEBACK)
        return _encoded(line)


class TextFormatter(_Formatter):
    """`time LEVEL logger: message (field=value …)`; only a traceback takes more than one line."""

    def line(self, record: logging.LogRecord) -> str:
        """Return the line. Control characters, which a client could forge lines with, are escaped."""
        known = " ".join(f"{name}={value}" for name, value in self.fields_of(record).items())
        message = _shortened(record.getMessage(), LONGEST_MESSAGE)
        text = f"{_utc(record.created)} {record.levelname} {record.name}: {message}"
        line = _one_line(f"{text} ({known})" if known else text)
        if not record.exc_info:
            return line
        return f"{line}\n{_shortened(self.formatException(record.exc_info), LONGEST_TRACEBACK)}"


_FORMATTERS: dict[str, type[_Formatter]] = {"text": TextFormatter, "json": JsonFormatter}


class _Limited(logging.StreamHandler[TextIO]):
    """Limits lines by kind and party, and reports the number of suppressed ones later.

    Critical lines, the last of a process, and requested debugging lines are never suppressed.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float]) -> None:
        super().__init__(stream)
        self._clock = clock
        self._budget = LineBudget()

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line, if there is room for it. Called with the handler's lock held."""
        self.report_suppressed()
        always = record.levelno >= logging.CRITICAL or record.levelno <= logging.DEBUG
        cost = LINES_OF_TRACEBACK if record.exc_info else 1.0
        if always or self._budget.allows(_kind(record), _party(record), self._clock(), cost):
            super().emit(record)

    def report_suppressed(self, all_of_it: bool = False) -> None:
        """Report lines suppressed a while ago, or all."""
        for (kind, party), count in self._budget.take_due(self._clock(), all_of_it):
            known = fields(event="left_out", left_out=count, kind=kind, peer=party or None)
            about = f" about {party}" if party else ""
            line = (logging.WARNING, "", 0, "suppressed %d similar lines%s: %s", (count, about, kind), None)
            record = logging.LogRecord(__name__, *line)
            record.__dict__.update(known)
            super().emit(record)


def _kind(record: logging.LogRecord) -> str:
    """Return the kind of a line; the number of kinds is bounded by the log calls and events in the code."""
    event = getattr(record, FIELDS, {}).get("event")
    if event is not None:
        return f"{record.name} {event}"
    # Without arguments a peer may have chosen the text.
    return f"{record.name} {record.msg!r}" if record.args else f"{record.name}, line {record.lineno}"


def _party(record: logging.LogRecord) -> str:
    """Return the party of a line: a field that names it, or a peer's address among the arguments."""
    known = getattr(record, FIELDS, {})
    named = next((str(known[name]) for name in _PARTIES if known.get(name) is not None), None)
    if named is not None:
        return named
    for argument in record.args if isinstance(record.args, tuple) else ():
        if isinstance(argument, tuple) and argument:
            return str(argument[0])
        if isinstance(argument, str) and (address := _ADDRESS.fullmatch(argument)):
            return address[1]
    return ""


class LogOutput:
    """The process's log: one stream, whose level and format may change while it runs.

    Lines that a peer could cause without limit are rate-limited (`line_budget`).
    """

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._handler = _Limited(stream or sys.stderr, clock)
        self._always: dict[str, object] = {}
        self._secrets: set[str] = set()
        self._handler.setFormatter(TextFormatter(self._always, self._secrets))

    def install(self) -> None:
        """Take every logger's lines, instead of whatever took them before."""
        logging.getLogger().handlers[:] = [self._handler]

    def remove(self) -> None:
        """Take no more lines."""
        logging.getLogger().removeHandler(self._handler)

    def set(self, level: str, form: str) -> None:
        """Write from now on what has at least this level (one of LEVELS), in this form (one of FORMATS)."""
        self._handler.setFormatter(_FORMATTERS[form](self._always, self._secrets))
        logging.getLogger().setLevel(level.upper())

    def report_suppressed(self, all_of_it: bool = False) -> None:
        """Report lines suppressed a while ago or (at the end) until now."""
        with self._handler.lock or nullcontext():
            self._handler.report_suppressed(all_of_it)

    def set_epoch(self, epoch: int) -> None:
        """Name the run of the controller in every line."""
        self._always["epoch"] = epoch

    def hide(self, secrets: Iterable[str]) -> None:
        """Mask these secrets in all lines."""
        for secret in filter(None, secrets):
            self._secrets |= {secret, json.dumps(secret)[1:-1]}


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text) - longest} more characters)"


def _one_line(text: str) -> str:
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
