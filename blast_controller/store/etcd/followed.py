"""The journal as a controller sees it that does not lead."""

from __future__ import annotations

from blast_controller.store.etcd.connection import Connection
from blast_controller.store.etcd.history import EtcdHistory, checked_head
from blast_controller.store.etcd.keys import Keys
from blast_controller.store.etcd.loading import load
from blast_controller.store.etcd.methods import TXN
from blast_controller.store.etcd.proto import etcd_pb2 as api
from blast_controller.store.etcd.requests import get, reading
from blast_controller.store.interface import Entry, Loaded, Seen


class FollowedJournal:
    """Reads, and writes nothing. From any thread."""

    def __init__(self, connection: Connection, keys: Keys) -> None:
        self._connection = connection
        self._keys = keys
        self._history = EtcdHistory(connection, keys)

    def look(self) -> Seen:
        """Who leads, and how far the journal has come. Raises StoreFault."""
        both = [reading(get(self._keys.leader)), reading(get(self._keys.head))]
        answer = self._connection.call(TXN, api.TxnRequest(success=both))
        leader, head = (list(one.response_range.kvs) for one in answer.responses)
        sequence = checked_head(self._keys, head[0].value).sequence if head else 0
        if not leader:
            return Seen(None, 0, sequence)
        return Seen(leader[0].value.decode(), leader[0].create_revision, sequence)

    def state(self) -> Loaded:
        """All that is in it, as it was at one moment. Raises StoreFault."""
        found = self._history.head()
        return Loaded(found[0].epoch if found else 0, load(self._connection, self._keys).bodies, found is None)

    def journal(self, after_sequence: int, limit: int) -> list[Entry]:
        """As `Store.journal`."""
        return self._history.read(after_sequence, limit)
