"""The journal as a controller sees it that does not lead."""

from __future__ import annotations

from blast_controller.store.etcd.connection import EtcdConnection
from blast_controller.store.etcd.errors import DamagedEtcdJournalError
from blast_controller.store.etcd.history import EtcdHistory, checked_head, whole
from blast_controller.store.etcd.keys import Keys
from blast_controller.store.etcd.loading import load
from blast_controller.store.etcd.methods import TXN
from blast_controller.store.etcd.proto import etcd_pb2 as api
from blast_controller.store.etcd.requests import get, reading
from blast_controller.store.interface import Entry, JournalPosition, Loaded


class FollowedJournal:
    """Reads, and writes nothing. From any thread."""

    def __init__(self, connection: EtcdConnection, keys: Keys) -> None:
        self._connection = connection
        self._keys = keys
        self._history = EtcdHistory(connection, keys)

    def look(self) -> JournalPosition:
        """Return the leader and the position of the journal. Raises JournalError."""
        keys = (self._keys.leader, self._keys.head, self._keys.generation)
        answer = self._connection.call(TXN, api.TxnRequest(success=[reading(get(key)) for key in keys]))
        leader, head, generation = (list(one.response_range.kvs) for one in answer.responses)
        sequence = checked_head(self._keys, head[0].value).sequence if head else 0
        if not leader:
            return JournalPosition(None, 0, sequence)
        with whole(self._keys):
            return JournalPosition(leader[0].value.decode(), int(generation[0].value) if generation else 0, sequence)

    def state(self) -> Loaded:
        """Return the state at one moment, including committed parts that are not applied yet. Raises JournalError."""
        keys = self._keys
        staged = api.RangeRequest(key=keys.all_staged.first, range_end=keys.all_staged.end)
        answer = self._connection.call(TXN, api.TxnRequest(success=[reading(get(keys.head)), reading(staged)]))
        heads, parts = (list(one.response_range.kvs) for one in answer.responses)
        if not heads:
            return Loaded(0, {}, True)
        head = checked_head(keys, heads[0].value)
        if len(parts) < head.staged:
            raise DamagedEtcdJournalError(
                keys.prefix, f"{len(parts)} of the {head.staged} parts of its latest commit exist"
            )
        # Parts staged by an abandoned commit may follow the committed ones.
        counting = [part.value for part in parts[: head.staged]]
        state = load(self._connection, keys, answer.header.revision, counting)
        return Loaded(head.epoch, state.bodies, False, head.sequence)

    def journal(self, after_sequence: int, limit: int) -> list[Entry]:
        """Read entries like `Store.journal`."""
        return self._history.read(after_sequence, limit)
