"""Reading of the history and the head from etcd, for the leader and for standbys."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from blast_controller.store.etcd.connection import EtcdConnection
from blast_controller.store.etcd.errors import DamagedEtcdJournalError, EtcdFormatError
from blast_controller.store.etcd.keys import Keys, KeySpan, number_of
from blast_controller.store.etcd.methods import RANGE
from blast_controller.store.etcd.proto import etcd_pb2 as api
from blast_controller.store.etcd.requests import get
from blast_controller.store.etcd.values import FORMAT, Head, head_format, to_entries, to_head
from blast_controller.store.interface import Entry

PAGE = 16
"""Values of the history read at a time: two megabytes, if they are full."""


@contextmanager
def whole(keys: Keys) -> Iterator[None]:
    """Turn ValueError into a fault: the data was not written by Blast."""
    try:
        yield
    except ValueError as error:
        raise DamagedEtcdJournalError(keys.prefix, str(error)) from error


class EtcdHistory:
    """Reader of the history, usable from any thread, also on a standby."""

    def __init__(self, connection: EtcdConnection, keys: Keys) -> None:
        self._connection = connection
        self._keys = keys

    def read(self, after_sequence: int, limit: int) -> list[Entry]:
        """Read at most `limit` entries after `after_sequence`, oldest first. Raises JournalError."""
        found: list[Entry] = []
        while len(found) < limit:
            page = self.batches(after_sequence, min(PAGE, limit - len(found)))
            if not page:
                break
            found += [entry for batch in page for entry in batch if entry.sequence > after_sequence]
            after_sequence = page[-1][-1].sequence
        return found[: max(0, limit)]

    def batches(self, after_sequence: int, limit: int) -> list[list[Entry]]:
        """Read at most `limit` complete batches with entries after `after_sequence`. Raises JournalError."""
        span = self._keys.history_after(after_sequence)
        with whole(self._keys):
            return [to_entries(number_of(kv.key), kv.value) for kv in self._range(span, limit)]

    def head(self) -> tuple[Head, int] | None:
        """Return the head and the revision of its last write, or None.

        Raises EtcdFormatError, DamagedEtcdJournalError, JournalError.
        """
        answer = self._connection.call(RANGE, get(self._keys.head))
        return None if not answer.kvs else (checked_head(self._keys, answer.kvs[0].value), answer.kvs[0].mod_revision)

    def _range(self, span: KeySpan, limit: int) -> list[api.KeyValue]:
        request = api.RangeRequest(key=span.first, range_end=span.end, limit=limit)
        return list(self._connection.call(RANGE, request).kvs)


def checked_head(keys: Keys, value: bytes) -> Head:
    """Return a head that this release knows. Raises EtcdFormatError, DamagedEtcdJournalError."""
    with whole(keys):
        found = head_format(value)
        if found != FORMAT:
            raise EtcdFormatError(keys.prefix, found, FORMAT)
        return to_head(value)
