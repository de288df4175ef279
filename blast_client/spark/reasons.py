"""Why a value did not go by Blast: a line in the log for each, and a count."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from enum import StrEnum

_LOG = logging.getLogger("blast_client.spark")


class Reason(StrEnum):
    """Why Spark's own broadcast, or the driver itself, brought a value."""

    SMALL = "small"
    """It is below the threshold."""
    LOCAL = "local"
    """Driver and executor are one process: nothing has to travel."""
    ENCRYPTED = "encrypted"
    """Spark authenticates or encrypts, which only its own way can keep to."""
    NO_EXECUTORS = "no_executors"
    """A job was submitted while there was none."""
    UNKNOWN_HOST = "unknown_host"
    """Nobody says which agent is beside the executors of a host."""
    NOT_SENT = "not_sent"
    """The driver could not send at all."""
    NOT_DELIVERED = "not_delivered"
    """A host does not have it: no agent there, no room, refused, neither light nor a pipeline reached it."""
    JVM = "jvm"
    """Something of the JVM wants it, where only Spark's own broadcasts are known."""
    FETCHED = "fetched"
    """An executor found no copy on its host, and took the value from the driver. The others are not concerned."""


_counts: Counter[Reason] = Counter()
_counting = threading.Lock()


def reasons_so_far() -> dict[Reason, int]:
    """How often each has been the reason in this process."""
    with _counting:
        return dict(_counts)


def tell(reason: Reason, what: str) -> None:
    """Count it, and say `what` happened in one line."""
    with _counting:
        _counts[reason] += 1
    level = logging.INFO if reason in (Reason.SMALL, Reason.LOCAL) else logging.WARNING
    _LOG.log(level, "%s (%s)", what, reason)
