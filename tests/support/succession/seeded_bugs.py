"""Faults put into succession on purpose: the simulation must find every one of them. Each is a patch of one method."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import pytest

from blast_client.freshness import Freshness
from blast_controller.core.rollout.reconciliation import Reconciliation
from blast_controller.openflow.session import Session, _State
from blast_controller.openflow.vocabulary import Effect
from blast_controller.runtime.runtime import Runtime, Turn
from blast_controller.runtime.settling import run_into
from blast_controller.store.etcd.followed import FollowedJournal
from blast_controller.store.etcd.leadership import Leadership
from blast_controller.store.etcd.ledger import Ledger, _deposed
from blast_controller.store.etcd.loading import load, parsed
from blast_controller.store.etcd.methods import TXN
from blast_controller.store.etcd.proto import etcd_pb2 as api
from blast_controller.store.etcd.requests import get, reading
from blast_controller.store.etcd.values import Head
from blast_controller.store.interface import Loaded
from tests.support.succession import faults
from tests.support.succession.faults import FAULTS, Fault

Patch = pytest.MonkeyPatch


def lease_not_looked_at(patch: Patch) -> None:
    """Who leads takes that for granted, whatever its lease says."""
    patch.setattr(Leadership, "still_leads", lambda self: self.term is not None)


def no_revision_compared(patch: Patch) -> None:
    """A change is written whoever leads and whatever the head is."""
    patch.setattr(
        Ledger, "_fenced", lambda self, operations: api.TxnRequest(success=operations, failure=self._standing)
    )


def no_role_asked_for(patch: Patch) -> None:
    """A leader takes every ToR for its own without a word about roles."""

    def lead(self: Session, tor: Any, terms: Any, now: float) -> list[Effect]:
        self._tor, self._terms, self._state = tor, terms, _State.PREPARING
        return self.read(mend=True, now=now)

    patch.setattr(Session, "lead", lead)


def late_writes_left(patch: Patch) -> None:
    """What an older leader's late command has made is left on a switch."""
    patch.setattr(Reconciliation, "_come_late", lambda self, switch, present: ())


def older_answers_taken(patch: Patch) -> None:
    """A client takes whatever a standby says."""
    patch.setattr(Freshness, "of", lambda self, answer, known, address: answer)


def late_parts_written(patch: Patch) -> None:
    """A part of a large commit may be written at any time while its controller leads."""

    def carry_out(self: Ledger, part: bytes, after: Head) -> bool:
        request = api.TxnRequest(
            compare=[self._leads], success=list(parsed(part).success), failure=[reading(get(self._keys.leader))]
        )
        answer = self._connection.call(TXN, request)
        if not answer.succeeded:
            self._over = _deposed(list(answer.responses[0].response_range.kvs))
            raise self._over
        return True

    patch.setattr(Ledger, "_carry_out", carry_out)


def staged_not_shown(patch: Patch) -> None:
    """A standby shows a commit that is not carried out yet as if it were, and does not look again."""

    def state(self: FollowedJournal) -> Loaded:
        found = self._history.head()
        loaded = load(self._connection, self._keys).bodies
        return Loaded(found[0].epoch if found else 0, loaded, found is None, found[0].sequence if found else 0)

    patch.setattr(FollowedJournal, "state", state)


def undurable_told(patch: Patch) -> None:
    """While nothing can be written, refusals tell of what is not durable."""

    def work_into(self: Runtime, outer: Future[Any], work: Callable[[Turn], Any]) -> None:
        known = len(self._unwritten)
        settle = run_into(outer, work, Turn(self))
        if self.store_fault is not None and len(self._unwritten) == known and not self._undecided:
            settle()
        else:
            self._held_back.append(settle)

    patch.setattr(Runtime, "_work_into", work_into)


def doubt_forgotten(patch: Patch) -> None:
    """A change of which no answer came counts as not written."""
    decide = Ledger._decide

    def careless(self: Ledger, attempt: Any) -> None:
        try:
            decide(self, attempt)
        finally:
            self._in_doubt = None

    patch.setattr(Ledger, "_decide", careless)


BUGS: Mapping[Callable[[Patch], None], Sequence[Fault]] = {
    lease_not_looked_at: FAULTS,
    no_revision_compared: FAULTS,
    no_role_asked_for: FAULTS,
    late_writes_left: (faults.late_writes,),
    older_answers_taken: FAULTS,
    late_parts_written: (faults.slow_disk, faults.lost_answers),
    staged_not_shown: (faults.slow_disk,),
    undurable_told: (faults.etcd_full,),
    doubt_forgotten: (faults.lost_answers, faults.slow_disk),
}
"""Each with the faults among which it is looked for: all, or those that bring it out soon."""
