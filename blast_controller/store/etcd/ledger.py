"""Writes the journal: each change is one transaction that compares the leader's key and the head, and writes the head.

**A change larger than one transaction** (a megabyte, or 3,600 operations) is staged: its parts are written under
`staged/`, where they have no effect; then one transaction writes the head with their number. This commits the change.
Only then are the parts applied, each in one transaction, and finally the head forgets them. A part may be applied
twice, but not later than that: these transactions compare the head, too. A controller that becomes leader in between
applies the parts that the head names and drops others: a change exists completely or not at all.

**Without an answer** the change may be written now, later or never. Reading is not enough, since the request may still
be in flight. The same transaction is sent again before anything else is written: at most one of its copies can find the
head unchanged, and when one is refused for that, the head shows which change was written. Thus a change in doubt is
always resolved before the next and never written twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from blast_controller.store.errors import JournalError
from blast_controller.store.etcd.connection import EtcdConnection
from blast_controller.store.etcd.errors import (
    DamagedEtcdJournalError,
    DeposedError,
    EtcdSpaceError,
    StoreUnavailableError,
)
from blast_controller.store.etcd.history import EtcdHistory, checked_head, whole
from blast_controller.store.etcd.keys import Keys
from blast_controller.store.etcd.leadership import Term
from blast_controller.store.etcd.loading import parsed
from blast_controller.store.etcd.methods import TXN
from blast_controller.store.etcd.proto import etcd_pb2 as api
from blast_controller.store.etcd.requests import (
    changed_at,
    created_at,
    delete_all,
    get,
    grouped,
    nested,
    put,
    reading,
)
from blast_controller.store.etcd.values import Head
from blast_controller.store.rows import Row

log = logging.getLogger(__name__)

MAX_BYTES = 1 << 20
"""Of the operations of one transaction: etcd takes 1.5 MiB by default."""


@dataclass(frozen=True, slots=True)
class JournalChange:
    """A change of the journal, applied completely or not at all.

    `head` is the head after it, its `change` and `staged` left to the ledger; `rows` are the rows of the commit; `then`
    is called once, when the change is known to be written.
    """

    head: Head
    operations: Sequence[api.RequestOp]
    rows: Sequence[Row] = ()
    then: Callable[[], None] = field(default=lambda: None)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A change as transactions: the `parts` to be staged, and the one that decides."""

    change: JournalChange
    head: Head
    parts: Sequence[bytes]
    decides: api.TxnRequest


class Ledger:
    """Writer of the journal for the leader of `term`, from `head` on; last written at `revision` (0: never).

    One thread at a time. `write` and `settle` raise JournalError: DeposedError if another controller is or was the
    leader since, StoreUnavailableError if etcd does not answer, after which the outcome of a change may be unknown.
    """

    def __init__(self, connection: EtcdConnection, keys: Keys, term: Term, head: Head, revision: int) -> None:
        self.head = head
        self._connection = connection
        self._keys = keys
        self.revision = revision
        self._is_leader = created_at(keys.leader, term.revision)
        self._standing = [reading(get(keys.leader)), reading(get(keys.head))]
        self._in_doubt: _Attempt | None = None
        self._found: list[Row] = []
        self._over: DeposedError | None = None

    def write(self, change: JournalChange) -> None:
        """Write a change; durable on return. An earlier change in doubt is resolved first."""
        self.settle()
        if self._over is not None:
            raise self._over
        attempt = self._attempt(change)
        for number, part in enumerate(attempt.parts):
            self._stage(number, part)
        self._decide(attempt)

    def settle(self) -> None:
        """Decide what is in doubt, and finish what is begun."""
        attempt = self._in_doubt
        if attempt is not None:
            self._decide(attempt)
            self._found += attempt.change.rows
        if self.head.staged and self._over is None:
            self._finish()

    def left_of(self, rows: list[Row]) -> list[Row]:
        """Return the rows left to write of a commit that begins with a change in doubt that was found to be written.

        That change stays remembered until `acknowledge`: the remaining rows may become in doubt as well.
        """
        if rows[: len(self._found)] != self._found:
            self._found = []
        return rows[len(self._found) :]

    def acknowledge(self) -> None:
        """Note that the committer knows that all rows are written."""
        self._found = []

    # ----------------------------------------------------------------------------------------------- one change

    def _attempt(self, change: JournalChange) -> _Attempt:
        groups = list(grouped(change.operations, MAX_BYTES))
        is_small = len(groups) <= 1
        head = replace(change.head, change=self.head.change + 1, staged=0 if is_small else len(groups))
        parts = [] if is_small else [api.TxnRequest(success=nested(group)).SerializeToString() for group in groups]
        operations = nested(groups[0]) if groups and is_small else []
        return _Attempt(change, head, parts, self._fenced([*operations, put(self._keys.head, head.pack())]))

    def _fenced(self, operations: Sequence[api.RequestOp]) -> api.TxnRequest:
        return api.TxnRequest(
            compare=[self._is_leader, changed_at(self._keys.head, self.revision)],
            success=operations,
            failure=self._standing,
        )

    def _decide(self, attempt: _Attempt) -> None:
        try:
            answer = self._connection.call(TXN, attempt.decides)
        except StoreUnavailableError as fault:
            if fault.may_be_done:
                self._in_doubt = attempt
            raise
        except EtcdSpaceError as fault:
            self._look_after(attempt, fault)
            return
        if answer.succeeded:
            self._adopt(attempt, answer.header.revision)
        else:
            self._find_out(attempt, answer)

    def _look_after(self, attempt: _Attempt, fault: EtcdSpaceError) -> None:
        """Find out whether etcd applied a transaction that it answered with EtcdSpaceError.

        etcd applies the transaction that exceeds its quota but reports the same error as for refused ones. Raises
        `fault` for a refused one.
        """
        before, self._in_doubt = self._in_doubt, attempt
        answer = self._connection.call(TXN, api.TxnRequest(success=self._standing))
        leader, head = (list(one.response_range.kvs) for one in answer.responses)
        is_as_before = (head[0].mod_revision if head else 0) == self.revision
        if self._is_ours(leader) and is_as_before:
            self._in_doubt = before
            raise fault
        self._find_out(attempt, answer)

    def _find_out(self, attempt: _Attempt, answer: api.TxnResponse) -> None:
        """Resolve a changed leader or head: this very change was written, or another controller was the leader."""
        leader, head = (list(one.response_range.kvs) for one in answer.responses)
        if self._is_ours(leader):
            if not head or checked_head(self._keys, head[0].value) != attempt.head:
                raise DamagedEtcdJournalError(self._keys.prefix, "a controller that is not the leader writes to it")
            self._adopt(attempt, head[0].mod_revision)
            return
        # From here on nothing of this leader's can come to be written. Looking for what was may fail.
        self._in_doubt = attempt
        is_written = self._is_in_history(attempt)
        self._in_doubt = None
        self._over = _deposed(leader)
        if not is_written:
            raise self._over if is_written is False else DeposedError(self._over.address, is_known=False)
        attempt.change.then()

    def _is_in_history(self, attempt: _Attempt) -> bool | None:
        """Return true if the change was written before another leader used the same sequences.

        None if this cannot be determined any more.
        """
        first = self.head.sequence + 1
        history = EtcdHistory(self._connection, self._keys)
        found = history.head()
        if found is None or found[0].sequence < first or attempt.head.sequence < first:
            return False
        if found[0] == attempt.head:
            return True
        entries = history.read(self.head.sequence, 1)
        if not entries or entries[0].sequence != first:
            return None
        return entries[0].epoch == attempt.head.epoch

    def _is_ours(self, leader: Sequence[api.KeyValue]) -> bool:
        return bool(leader) and leader[0].create_revision == self._is_leader.create_revision

    def _adopt(self, attempt: _Attempt, revision: int) -> None:
        self._in_doubt = None
        self.head, self.revision = attempt.head, revision
        attempt.change.then()
        if attempt.parts:
            try:
                self._finish(attempt.parts)
            except JournalError as fault:
                # It counts as written already; the next change or the next leader completes it.
                log.warning("a large commit is written but not yet applied: %s", fault)

    # ------------------------------------------------------------------------------------- changes in several parts

    def _finish(self, parts: Sequence[bytes] = ()) -> None:
        """Carry out what the head names, and let it forget that."""
        after = replace(self.head, change=self.head.change + 1, staged=0)
        for number in range(self.head.staged):
            part = parts[number] if parts else self._part(number, after)
            if part is None or not self._carry_out(part, after):
                return
        answer = self._unless_forgotten([put(self._keys.head, after.pack()), delete_all(self._keys.all_staged)], after)
        if answer is not None:
            self.head, self.revision = after, answer.header.revision

    def _part(self, number: int, after: Head) -> bytes | None:
        """Return a part of the change that the head names; None if it is forgotten already."""
        answer = self._unless_forgotten([reading(get(self._keys.staged(number)))], after)
        if answer is None:
            return None
        found = answer.responses[0].response_range.kvs
        if not found:
            raise DamagedEtcdJournalError(self._keys.prefix, f"part {number} of its latest commit is missing")
        value: bytes = found[0].value
        return value

    def _carry_out(self, part: bytes, after: Head) -> bool:
        """Apply a part; return false if the change is forgotten already."""
        with whole(self._keys):
            operations = list(parsed(part).success)
        return self._unless_forgotten(operations, after) is not None

    def _unless_forgotten(self, operations: Sequence[api.RequestOp], after: Head) -> api.TxnResponse | None:
        """Do this while the head names the change that is being carried out.

        None where the head is `after` already: it was all done before, and the answer lost.
        """
        answer = self._connection.call(TXN, self._fenced(operations))
        if answer.succeeded:
            return answer
        leader, found = (list(one.response_range.kvs) for one in answer.responses)
        if not self._is_ours(leader):
            self._over = _deposed(leader)
            raise self._over
        if not found or checked_head(self._keys, found[0].value) != after:
            raise DamagedEtcdJournalError(self._keys.prefix, "a controller that is not the leader writes to it")
        self.head, self.revision = after, found[0].mod_revision
        return None

    def _stage(self, number: int, part: bytes) -> None:
        """Put a part where it means nothing yet.

        A request without an answer is sent again, and the first may arrive when later changes have long been written:
        the head is compared, too.
        """
        answer = self._connection.call(TXN, self._fenced([put(self._keys.staged(number), part)]))
        if not answer.succeeded:
            leader = list(answer.responses[0].response_range.kvs)
            if self._is_ours(leader):
                raise DamagedEtcdJournalError(self._keys.prefix, "a controller that is not the leader writes to it")
            self._over = _deposed(leader)
            raise self._over


def _deposed(leader: Sequence[api.KeyValue]) -> DeposedError:
    return DeposedError(leader[0].value.decode() if leader else None)
