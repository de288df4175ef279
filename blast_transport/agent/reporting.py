"""Output of an agent: log lines on standard error, and optionally one JSON line per event on standard output."""

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
"""Between two lines about the same kind of refusal, since clients can cause any number of them."""

log = logging.getLogger(LOGGER)


class RefusalReason(Enum):
    """Reason for refusing a connection or a request. A closed list: these are names of counters."""

    CROWD = "crowd"
    """Too many connections."""
    AUTHENTICATION = "authentication"
    PROTOCOL = "protocol"
    """The first bytes are not a message."""
    ROLE = "role"
    """A neighbor requested a session."""
    TAKEN = "taken"
    """The session's number is in use."""
    FULL = "full"
    """Too many sessions."""
    TARGET = "target"
    """The target is not permitted, or cannot be used."""
    RESOURCES = "resources"
    """The system provides no more threads, descriptors or memory."""
    FAULT = "fault"
    """An error of the program; the log has it."""
    JOIN = "join"
    """A neighbor belongs to no running session."""
    MEASURE = "measure"
    """A measurement exceeds a limit or runs concurrently with another, or a probe belongs to none."""


class Reporter:
    """Reporter of events. Thread-safe."""

    def __init__(self, events: TextIO | None = None) -> None:
        self._events = events
        self._lock = threading.Lock()

    def report(self, event: str, message: str, level: int = logging.INFO, **fields: object) -> None:
        """Report an event: `event` and `fields` for programs, `message` for people."""
        known = {name: value for name, value in fields.items() if value is not None}
        log.log(level, "%s", message, extra={FIELDS: {"event": event, **known}})
        if self._events is not None:
            with self._lock:
                self._events.write(json.dumps({"event": event, **known}, default=str) + "\n")
                self._events.flush()


class RefusalCounters:
    """Counters of refusals, which reports each kind at most once a second. Thread-safe."""

    def __init__(self, reporter: Reporter, clock: Callable[[], float] = time.monotonic) -> None:
        self.totals: Counter[RefusalReason] = Counter()
        self._reporter = reporter
        self._clock = clock
        self._lock = threading.Lock()
        self._reported: dict[RefusalReason, tuple[float, int]] = {}

    def add(self, kind: RefusalReason, peer: str, reason: str) -> bool:
        """Count a refusal of `peer` for this reason; return whether it was reported now."""
        with self._lock:
            self.totals[kind] += 1
            now, total = self._clock(), self.totals[kind]
            reported_at, reported = self._reported.get(kind, (-_QUIET_SECONDS, 0))
            if now - reported_at < _QUIET_SECONDS:
                return False
            self._reported[kind] = now, total
        others = total - reported - 1
        self._reporter.report(
            "refused",
            f"refused {peer}: {reason}" + (f" (and {others} others since)" if others else ""),
            logging.WARNING,
            category=kind.value,
            peer=peer,
            reason=reason,
            total=total,
        )
        return True


# -------------------------------------------------------------------------------------------------------- the log


class AgentJsonFormatter(logging.Formatter):
    """One JSON object a line: time (UTC), level, thread, message, the event with its fields, error (a traceback)."""

    def format(self, record: logging.LogRecord) -> str:
        """Format the record."""
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


class AgentTextFormatter(logging.Formatter):
    """`time LEVEL message`; only a traceback takes more than one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Format the record; escape control characters, with which a client could forge lines."""
        text = f"{_utc(record.created)} {record.levelname} {record.getMessage()}"
        line = _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def install_log(level: str, form: str, stream: TextIO | None = None) -> None:
    """Write this process's log to `stream` (default: standard error), as `text` or `json`."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(AgentJsonFormatter() if form == "json" else AgentTextFormatter())
    logging.getLogger().handlers[:] = [handler]
    logging.getLogger().setLevel(level.upper())


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
