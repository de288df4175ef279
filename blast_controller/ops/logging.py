"""Log lines for people (text) or for machines (one JSON object a line), with the fields that a line's author knows.

A line gets its fields from `extra=fields(...)`; the epoch of this run of the controller is added to every line.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import TextIO

FIELDS = "blast_fields"
HIDDEN = "********"
LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def fields(**known: object) -> dict[str, object]:
    """The `extra` of a log call: the event's name, its request, reservation and so on; None is left out."""
    return {FIELDS: {name: value for name, value in known.items() if value is not None}}


class _Formatter(logging.Formatter, ABC):
    """`always` stands in every line, `secrets` in none."""

    def __init__(self, always: Mapping[str, object], secrets: Collection[str]) -> None:
        super().__init__()
        self.always = always
        self.secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        """The line, with secrets made unreadable: a device may repeat them in what it says."""
        line = self.line(record)
        for secret in self.secrets:
            line = line.replace(secret, HIDDEN).replace(json.dumps(secret)[1:-1], HIDDEN)
        return line

    @abstractmethod
    def line(self, record: logging.LogRecord) -> str:
        """The line as it would be if there were no secrets."""

    def fields_of(self, record: logging.LogRecord) -> dict[str, object]:
        """What is known of this line beside its message."""
        return {**getattr(record, FIELDS, {}), **self.always}


class JsonFormatter(_Formatter):
    """One JSON object a line: time (UTC), level, logger, thread, message, the line's fields, error (a traceback)."""

    def line(self, record: logging.LogRecord) -> str:
        """The line. A field cannot hide what every line has."""
        line: dict[str, object] = {
            "time": _utc(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "thread": record.threadName,
            "message": record.getMessage(),
        }
        line = {**line, **self.fields_of(record), **line}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class TextFormatter(_Formatter):
    """`time LEVEL logger: message (field=value …)`; only a traceback takes more than one line."""

    def line(self, record: logging.LogRecord) -> str:
        """The line. Control characters, which a client could forge lines with, are escaped."""
        known = " ".join(f"{name}={value}" for name, value in self.fields_of(record).items())
        text = f"{_utc(record.created)} {record.levelname} {record.name}: {record.getMessage()}"
        line = _one_line(f"{text} ({known})" if known else text)
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


_FORMATTERS: dict[str, type[_Formatter]] = {"text": TextFormatter, "json": JsonFormatter}


class LogOutput:
    """The process's log: one stream, whose level and format may change while it runs."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._handler = logging.StreamHandler(stream or sys.stderr)
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

    def set_epoch(self, epoch: int) -> None:
        """Name the run of the controller in every line."""
        self._always["epoch"] = epoch

    def hide(self, secrets: Iterable[str]) -> None:
        """Never write these."""
        self._secrets.update(filter(None, secrets))


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _one_line(text: str) -> str:
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
