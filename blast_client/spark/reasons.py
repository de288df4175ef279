"""Reasons why Blast did not carry a value: a log record for each, and counts."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from enum import StrEnum

_LOG = logging.getLogger("blast_client.spark")


class Reason(StrEnum):
    """The reason why Spark's broadcast, or the driver itself, delivered a value."""

    SMALL = "small"
    """The value is below the threshold."""
    LOCAL = "local"
    """Driver and executor are one process."""
    ENCRYPTED = "encrypted"
    """Spark authenticates or encrypts its data, which Blast would bypass."""
    NO_EXECUTORS = "no_executors"
    """A job was submitted while there was no executor."""
    UNKNOWN_HOST = "unknown_host"
    """No agent is configured for a host with executors."""
    NOT_SENT = "not_sent"
    """The driver could not send."""
    NOT_DELIVERED = "not_delivered"
    """A host did not receive the value: no agent, no space, refused, or unreachable."""
    JVM = "jvm"
    """Code of the JVM uses the value, which supports only Spark's broadcasts."""
    FETCHED = "fetched"
    """An executor found no copy on its host and fetched the value from the driver; others are not affected."""


_counts: Counter[Reason] = Counter()
_counting = threading.Lock()


def reasons_so_far() -> dict[Reason, int]:
    """Return the number of values for each reason in this process."""
    with _counting:
        return dict(_counts)


def log_reason(reason: Reason, message: str) -> None:
    """Count a reason and log a message."""
    with _counting:
        _counts[reason] += 1
    level = logging.INFO if reason in (Reason.SMALL, Reason.LOCAL) else logging.WARNING
    _LOG.log(level, "%s (%s)", message, reason)
