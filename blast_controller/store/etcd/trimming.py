"""Drops history that need not be kept, and what etcd remembers of keys as they were."""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import replace
from itertools import chain

from blast_controller.store.contents import Written
from blast_controller.store.etcd.connection import EtcdConnection
from blast_controller.store.etcd.errors import CredentialsRefusedError, RevisionCompactedError
from blast_controller.store.etcd.history import EtcdHistory
from blast_controller.store.etcd.keys import Keys
from blast_controller.store.etcd.ledger import JournalChange
from blast_controller.store.etcd.methods import COMPACT
from blast_controller.store.etcd.proto import etcd_pb2 as api
from blast_controller.store.etcd.requests import delete_all, put
from blast_controller.store.etcd.values import Head, batches, text_of
from blast_controller.store.interface import Entry
from blast_controller.store.retention import RetainedEntry, Retention, size_of

log = logging.getLogger(__name__)

BATCHES = 16
"""Of history, looked at and dropped at a time."""
FORGETTING = 60.0
"""Seconds for which etcd keeps old revisions: a follower that lags by less misses nothing."""


class Trimmer:
    """Caches the oldest entries, so that a search for expired ones usually needs no query. One thread at a time."""

    def __init__(self, history: EtcdHistory, keys: Keys, retention: Retention) -> None:
        self._history = history
        self._keys = keys
        self._retention = retention
        self._oldest: list[list[Entry]] = []
        self._lines: list[RetainedEntry] = []

    def change(self, head: Head, at: float) -> tuple[JournalChange | None, bool]:
        """Return the change that trims a journal at `head`, and true if there may be more to trim.

        Raises JournalError.
        """
        if not self._oldest:
            self._oldest = self._history.batches(0, BATCHES)
            self._lines = [_line(entry) for entry in chain.from_iterable(self._oldest)]
        last = self._retention.last_expired(self._lines, head.sequence, head.history_bytes, at)
        if not last:
            return None, False
        operations = [delete_all(self._keys.history_up_to(last))]
        for batch in self._oldest:
            if batch[0].sequence <= last < batch[-1].sequence:
                rest = [_written(entry) for entry in batch if entry.sequence > last]
                operations += [put(self._keys.history(end), value) for end, value in batches(rest)]
        size = head.history_bytes - sum(line.size for line in self._lines if line.sequence <= last)
        begun = sum(batch[0].sequence <= last for batch in self._oldest)
        after = replace(head, history_bytes=size, batches=(head.batches or 0) - begun + len(operations) - 1)
        change = JournalChange(after, operations, then=lambda: self._forget(last))
        return change, last == self._lines[-1].sequence

    def _forget(self, last: int) -> None:
        left = [[entry for entry in batch if entry.sequence > last] for batch in self._oldest]
        self._oldest = [batch for batch in left if batch]
        self._lines = [line for line in self._lines if line.sequence > last]


class RevisionCompaction:
    """Lets etcd forget old revisions, a while after they were current: those of all keys, not of our prefix only."""

    def __init__(self, connection: EtcdConnection) -> None:
        self._connection = connection
        self._may = True
        self._seen: deque[tuple[float, int]] = deque()

    def forget(self, revision: int, now: float) -> None:
        """Compact old revisions.

        `revision` is current at `now`, in seconds of any clock that only grows. Raises JournalError.
        """
        if not self._may:
            return
        if not self._seen or now - self._seen[-1][0] >= FORGETTING:
            self._seen.append((now, revision))
        if len(self._seen) > 1 and now - self._seen[0][0] >= FORGETTING:
            _, old = self._seen.popleft()
            try:
                self._connection.call(COMPACT, api.CompactionRequest(revision=old))
            except RevisionCompactedError:
                log.debug("another process compacted etcd to a later revision")
            except CredentialsRefusedError as fault:
                # Later releases let only administrators.
                self._may = False
                log.warning(
                    "this controller cannot compact etcd; run etcd with --auto-compaction-retention=1h: %s", fault
                )


def _line(entry: Entry) -> RetainedEntry:
    return RetainedEntry(entry.sequence, entry.at, size_of(text_of(entry.body)))


def _written(entry: Entry) -> Written:
    return Written(entry.sequence, entry.at, entry.epoch, entry.kind, entry.key, entry.note, text_of(entry.body))
