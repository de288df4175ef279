"""The store in etcd: only the leader writes, each commit in one transaction that checks leadership."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from blast_controller.core.model.records import Record
from blast_controller.store.errors import JournalLockedError, JournalNotOpenError
from blast_controller.store.etcd.commits import Delta, delta
from blast_controller.store.etcd.errors import DamagedEtcdJournalError, DeposedError
from blast_controller.store.etcd.history import EtcdHistory
from blast_controller.store.etcd.leadership import Leadership, Term
from blast_controller.store.etcd.ledger import JournalChange, Ledger
from blast_controller.store.etcd.loading import JournalState, check_empty, check_head, load
from blast_controller.store.etcd.requests import delete_all
from blast_controller.store.etcd.trimming import RevisionCompaction, Trimmer
from blast_controller.store.etcd.values import Head
from blast_controller.store.holdings import Changes, Holdings
from blast_controller.store.interface import Entry, Loaded
from blast_controller.store.retention import Retention
from blast_controller.store.rows import EPOCH_KEY, EPOCH_KIND, EPOCH_NOTE, Row, encode, to_row


@dataclass(frozen=True, slots=True)
class StorePolicy:
    """`wait`: seconds for which `open` waits to lead, None for ever. `retention` is of the history.

    `compacts`: whether etcd is ours, so that we have it forget old revisions; where others use it too, its own
    `--auto-compaction-retention` does, without which it fills up.
    """

    wait: float | None = None
    retention: Retention = field(default_factory=Retention)
    compacts: bool = True


@dataclass(slots=True)
class _OpenedEtcd:
    """The known state of the open journal; `firsts` and `digests` as in `commits`."""

    term: Term
    ledger: Ledger
    holdings: Holdings
    firsts: dict[tuple[str, str], int]
    digests: dict[tuple[str, str], int]
    trimmer: Trimmer
    forgetting: RevisionCompaction | None


class EtcdStore:
    """A Store under the keys of `leadership`, acquired by `open` and resigned by `close`.

    `on_commit` receives the seconds that each commit waited for etcd. The caller closes the connection.
    """

    def __init__(
        self,
        leadership: Leadership,
        policy: StorePolicy = StorePolicy(),
        on_commit: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        self.last_commit_seconds = 0.0
        self.sequence = 0
        """That of the latest entry that a commit, or the opening, has written."""
        self._leadership = leadership
        self._policy = policy
        self._on_commit = on_commit
        self._history = EtcdHistory(leadership.connection, leadership.keys)
        self._writing = threading.Lock()
        self._compacting = threading.Lock()
        self._opened: _OpenedEtcd | None = None

    # ------------------------------------------------------------------------------------------ open, close

    def open(self) -> Loaded:
        """Become the leader and load the journal; the first start creates it.

        Raises LeadershipLostError if another controller stays the leader for longer than the timeout,
        JournalLockedError if this store is open already, StoreUnavailableError, CredentialsRefusedError,
        EtcdSpaceError, DamagedEtcdJournalError, EtcdFormatError.
        """
        if self._opened is not None:
            raise JournalLockedError(Path(self._leadership.keys.prefix), os.getpid())
        term = self._leadership.campaign(self._policy.wait)
        try:
            return self._begin(term)
        except BaseException:
            self._leadership.resign()
            raise

    def close(self) -> None:
        """Resign as leader; a standby may take over at once."""
        with self._compacting, self._writing:
            self._opened = None
            self._leadership.resign()

    def _begin(self, term: Term) -> Loaded:
        connection, keys = self._leadership.connection, self._leadership.keys
        found = self._history.head()
        head, revision = found or (Head(0, 0, term.epoch, 0), 0)
        ledger = Ledger(connection, keys, term, head, revision)
        if found is None:
            check_empty(connection, keys)
        else:
            ledger.settle()
        with self._in_term(term):
            latest = self._history.read(ledger.head.sequence - 1, 1)
            state = load(connection, keys)
            check_head(connection, keys, state, ledger.head, term.epoch if found else None)
        opened = self._opened_with(term, ledger, state)
        opening = Row(EPOCH_KIND, EPOCH_KEY, encode({"epoch": term.epoch}), frozenset(), EPOCH_NOTE)
        entry = delta([opening], {}, ledger.head.sequence, (time.time(), term.epoch))
        # It is not a row of the state. Parts staged by an abandoned commit are removed with it.
        entry = Delta({}, {}, entry.entries)
        operations = list(entry.operations(keys))
        after = entry.after(ledger.head, state.digests, operations)
        ledger.write(JournalChange(after, [*operations, delete_all(keys.all_staged)]))
        self._opened, self.sequence = opened, ledger.head.sequence
        return Loaded(term.epoch, state.bodies, found is None, self.sequence, latest[0].at if latest else None)

    @contextmanager
    def _in_term(self, term: Term) -> Iterator[None]:
        """Raise DeposedError instead of damage if another leader may have written between two reads."""
        try:
            yield
        except DamagedEtcdJournalError:
            self._leadership.check(term)
            raise

    def _opened_with(self, term: Term, ledger: Ledger, state: JournalState) -> _OpenedEtcd:
        keys, policy = self._leadership.keys, self._policy
        trimmer = Trimmer(self._history, keys, policy.retention)
        forgetting = RevisionCompaction(self._leadership.connection) if policy.compacts else None
        return _OpenedEtcd(term, ledger, Holdings(state.holders), state.firsts, state.digests, trimmer, forgetting)

    # ------------------------------------------------------------------------------------------------ commit

    def commit(self, records: Sequence[Record], at: float) -> None:
        """Write all records or none, replicated to a majority of etcd's members.

        Raises DoubleHeldError and UnstorableError (ours), DeposedError, StoreUnavailableError, EtcdSpaceError. After
        StoreUnavailableError whether they are written is open, and decided before the next commit; one that begins with
        the same records goes on where they end.
        """
        rows = [to_row(record) for record in records]
        if not rows:
            return
        with self._writing:
            opened = self._current()
            started = time.perf_counter()
            with self._noticing():
                opened.ledger.settle()
                rows = opened.ledger.left_of(rows)
                if rows:
                    opened.ledger.write(self._change(opened, rows, at))
            opened.ledger.acknowledge()
            self.sequence = opened.ledger.head.sequence
            self.last_commit_seconds = time.perf_counter() - started
        self._on_commit(self.last_commit_seconds)

    def _change(self, opened: _OpenedEtcd, rows: Sequence[Row], at: float) -> JournalChange:
        head = opened.ledger.head
        held = opened.holdings.changes(rows)
        made = delta(rows, opened.firsts, head.sequence, (at, opened.term.epoch))
        operations = list(made.operations(self._leadership.keys))
        return JournalChange(
            made.after(head, opened.digests, operations), operations, rows, lambda: _remember(opened, made, held)
        )

    # ----------------------------------------------------------------------------------------------- history

    def journal(self, after_sequence: int, limit: int) -> list[Entry]:
        """Read at most `limit` entries after `after_sequence`, oldest first; from any thread."""
        self._current()
        return self._history.read(after_sequence, limit)

    def compact(self, at: float) -> bool:
        """Drop a batch of history, and let etcd compact; return true if there is more to drop."""
        with self._compacting:
            opened = self._current()
            with self._writing, self._noticing():
                opened.ledger.settle()
                change, more = opened.trimmer.change(opened.ledger.head, at)
                if change is not None:
                    opened.ledger.write(change)
            if opened.forgetting is not None:
                opened.forgetting.forget(opened.ledger.revision, time.monotonic())
            return more

    @contextmanager
    def _noticing(self) -> Iterator[None]:
        """Stop all device writes as soon as a call shows that leadership is lost."""
        try:
            yield
        except DeposedError:
            self._leadership.lost()
            raise

    def _current(self) -> _OpenedEtcd:
        opened = self._opened
        if opened is None:
            raise JournalNotOpenError
        return opened


def _remember(opened: _OpenedEtcd, made: Delta, held: Changes) -> None:
    for name in made.removed:
        del opened.firsts[name], opened.digests[name]
    opened.digests.update(made.digests())
    opened.firsts.update({name: first for name, (first, _) in made.kept.items()})
    opened.holdings.apply(held)
