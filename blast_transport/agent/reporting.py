"""What an agent tells: log lines on standard error, and on request one JSON line for each event on standard output."""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from enum import Enum
from typing import TextIO

LOGGER = "blast.agent"
FIELDS = "blast_fields"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_QUIET_SECONDS = 1.0

log = logging.getLogger(LOGGER)


class Why(Enum):
    """Why a connection, or what it asked for, was refused. A closed list: these are names of counters."""

    CROWD = "crowd"
    """Too many connections."""
    AUTHENTICATION = "authentication"
    PROTOCOL = "protocol"
    """What came first is no message."""
    ROLE = "role"
    """A neighbor wanted to start a session."""
    TAKEN = "taken"
    """The session's number is in use."""
    FULL = "full"
    """Too many sessions."""
    TARGET = "target"
    """What is to be written or run is not allowed, or cannot be."""
    RESOURCES = "resources"
    """The system gives the agent no more threads, descriptors or memory."""
    FAULT = "fault"
    """An error of the program; the log has it."""
    JOIN = "join"
    """A neighbor does not belong to a session that runs."""
    MEASURE = "measure"
    """A measurement that is more than may be, or is one too many, or a probe of none."""


class Reporter:
    """Tells events. Thread-safe."""

    def __init__(self, events: TextIO | None = None) -> None:
        self._events = events
        self._lock = threading.Lock()

    def tell(self, event: str, message: str, level: int = logging.INFO, **fields: object) -> None:
        """Something has happened: `event` and `fields` for machines, `message` for people."""
        known = {name: value for name, value in fields.items() if value is not None}
        log.log(level, "%s", message, extra={FIELDS: {"event": event, **known}})
        if self._events is not None:
            with self._lock:
                self._events.write(json.dumps({"event": event, **known}, default=str) + "\n")
                self._events.flush()


class Refusals:
    """Counts what was refused, and tells of it, but of each kind at most once a second. Thread-safe."""

    def __init__(self, reporter: Reporter, clock: Callable[[], float] = time.monotonic) -> None:
        self.totals: Counter[Why] = Counter()
        self._reporter = reporter
        self._clock = clock
        self._lock = threading.Lock()
        self._told: dict[Why, tuple[float, int]] = {}

    def add(self, why: Why, peer: str, reason: str) -> bool:
        """`peer` was refused for this reason; whether that was told now."""
        with self._lock:
            self.totals[why] += 1
            now, total = self._clock(), self.totals[why]
            told_at, told = self._told.get(why, (-_QUIET_SECONDS, 0))
            if now - told_at < _QUIET_SECONDS:
                return False
            self._told[why] = now, total
        others = total - told - 1
        self._reporter.tell(
            "refused",
            f"refused {peer}: {reason}" + (f" (and {others} others since)" if others else ""),
            logging.WARNING,
            why=why.value,
            peer=peer,
            reason=reason,
            total=total,
        )
        return True


# -------------------------------------------------------------------------------------------------------- the log


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time (UTC), level, thread, message, the event with its fields, error (a traceback)."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, object] = {
            "time": _utc(record.created),
            "level": record.levelname.lower(),
            "thread": record.threadName,
            "message": record.getMessage(),
        }
        line = {**line, **getattr(record, FIELDS, {}), **line}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class TextFormatter(logging.Formatter):
    """`time LEVEL message`; only a traceback takes more than one line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line. Control characters, which a stranger could forge lines with, are escaped."""
        text = f"{_utc(record.created)} {record.levelname} {record.getMessage()}"
        line = _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def install_log(level: str, form: str, stream: TextIO | None = None) -> None:
    """Write this process's log to `stream` (default: standard error), as `text` or `json`."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    logging.getLogger().handlers[:] = [handler]
    logging.getLogger().setLevel(level.upper())


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
