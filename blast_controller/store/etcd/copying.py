"""Copies a journal out of etcd, as it was at one revision, and into it, where no journal is yet."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from blast_controller.store.checksums import Sum, thing_digest
from blast_controller.store.contents import Contents, JournalExistsError, StateRow, Written
from blast_controller.store.etcd.connection import EtcdConnection
from blast_controller.store.etcd.errors import DamagedEtcdJournalError, DeposedError
from blast_controller.store.etcd.history import checked_head, whole
from blast_controller.store.etcd.keys import Keys, number_of
from blast_controller.store.etcd.leadership import Leadership
from blast_controller.store.etcd.ledger import MAX_BYTES
from blast_controller.store.etcd.loading import CHANGED_STATE, check_empty, pages
from blast_controller.store.etcd.methods import TXN
from blast_controller.store.etcd.proto import etcd_pb2 as api
from blast_controller.store.etcd.requests import changed_at, created_at, delete, delete_all, get, grouped, nested, put
from blast_controller.store.etcd.requests import reading as look
from blast_controller.store.etcd.values import Head, batches, pack_thing, text_of, to_entries, to_thing
from blast_controller.store.retention import size_of

MANY = 1000
"""Entries that are put into batches at a time."""


def contents_of_etcd(connection: EtcdConnection, keys: Keys) -> Contents:
    """Return the present contents of a journal, also while a controller writes to it. Raises JournalError.

    Reading its rows raises RevisionCompactedError if that takes longer than etcd keeps old revisions.
    """
    answer = connection.call(TXN, api.TxnRequest(success=[look(get(keys.head)), look(get(keys.epoch))]))
    heads, epochs = (list(one.response_range.kvs) for one in answer.responses)
    if not heads:
        raise DamagedEtcdJournalError(keys.prefix, "there is none")
    head = checked_head(keys, heads[0].value)
    if head.staged:
        raise DamagedEtcdJournalError(
            keys.prefix, "its latest commit is not yet applied: export again, or start a controller"
        )
    with whole(keys):
        epoch = int(epochs[0].value) if epochs else head.epoch
    return Contents(epoch, head.sequence, _rows(connection, keys, answer.header.revision, head))


def copy_into_etcd(leadership: Leadership, contents: Contents) -> None:
    """Write these contents as a new journal, which can be opened only when it is complete.

    This process is the leader meanwhile, so that no controller creates a journal. Raises JournalExistsError,
    LeadershipLostError, NotAnExportError, JournalError.
    """
    term = leadership.campaign(0.0)
    try:
        _Copy(leadership, term.revision).make(contents, term.epoch)
    finally:
        leadership.resign()


class _Copy:
    """A copy, written while `leadership` lasts, since `revision`."""

    def __init__(self, leadership: Leadership, revision: int) -> None:
        self._connection = leadership.connection
        self._keys = leadership.keys
        self._is_leader = created_at(leadership.keys.leader, revision)
        self._size = self._batches = 0
        self._state = Sum()

    def make(self, contents: Contents, epoch: int) -> None:
        keys = self._keys
        self._begin()
        for group in grouped(self._operations(contents), MAX_BYTES):
            self._write(nested(group))
        state, batches = self._state.total, self._batches
        head = Head(contents.sequence, self._size, contents.epoch, change=1, state=state, batches=batches)
        # The lead that was taken for this is none of the journal's, unless its epoch was here before.
        ends = [put(keys.epoch, str(max(contents.epoch, epoch if epoch > 1 else 0)).encode()), delete(keys.importing)]
        self._write([put(keys.head, head.pack()), *ends])

    def _begin(self) -> None:
        keys = self._keys
        found = self._connection.call(TXN, api.TxnRequest(success=[look(get(keys.head)), look(get(keys.importing))]))
        head, importing = (list(one.response_range.kvs) for one in found.responses)
        if head:
            raise JournalExistsError(f"{keys.prefix} in etcd")
        if not importing:
            check_empty(self._connection, keys)
        # Remains of an earlier import that was not completed.
        self._write([put(keys.importing, b""), *map(delete_all, (keys.states, keys.histories, keys.all_staged))])

    def _operations(self, contents: Contents) -> Iterator[api.RequestOp]:
        for kind, rows in groupby(contents.rows, type):
            if kind is StateRow:
                for row in rows:
                    if isinstance(row, StateRow):
                        self._state.change((), [thing_digest(*row)])
                        yield put(self._keys.state(row.first), pack_thing(row))
                continue
            entries: list[Written] = []
            for row in rows:
                if isinstance(row, Written):
                    entries.append(row)
                    self._size += size_of(row.body)
                if len(entries) == MANY:
                    yield from self._puts(entries)
                    entries = []
            if entries:
                yield from self._puts(entries)

    def _puts(self, entries: list[Written]) -> Iterator[api.RequestOp]:
        for last, value in batches(entries):
            self._batches += 1
            yield put(self._keys.history(last), value)

    def _write(self, operations: list[api.RequestOp]) -> None:
        compare = [self._is_leader, changed_at(self._keys.head, 0)]
        answer = self._connection.call(TXN, api.TxnRequest(compare=compare, success=operations))
        if not answer.succeeded and not self._is_done(operations):
            raise DeposedError(None)

    def _is_done(self, operations: list[api.RequestOp]) -> bool:
        """Return true if the last write, of the head, was applied although its answer was lost."""
        last = operations[0].request_put
        found = self._connection.call(TXN, api.TxnRequest(success=[look(get(self._keys.head))]))
        heads = list(found.responses[0].response_range.kvs)
        return bool(heads) and last.key == self._keys.head and heads[0].value == last.value


def _rows(connection: EtcdConnection, keys: Keys, revision: int, head: Head) -> Iterator[StateRow | Written]:
    found = Sum()
    with whole(keys):
        for kv in pages(connection, keys.states, revision):
            thing, _ = to_thing(number_of(kv.key), kv.value)
            found.change((), [thing_digest(*thing)])
            yield thing
        if head.state not in (None, found.total):
            raise DamagedEtcdJournalError(keys.prefix, CHANGED_STATE)
        batches, following = 0, None
        for kv in pages(connection, keys.histories, revision, page=64):
            batches += 1
            for entry in to_entries(number_of(kv.key), kv.value):
                if following not in (None, entry.sequence):
                    raise DamagedEtcdJournalError(keys.prefix, f"entry {following} of its history is missing")
                following = entry.sequence + 1
                body = text_of(entry.body)
                yield Written(entry.sequence, entry.at, entry.epoch, entry.kind, entry.key, entry.note, body)
        if head.batches not in (None, batches):
            raise DamagedEtcdJournalError(
                keys.prefix, f"its history has {batches} keys, and {head.batches} were written"
            )
