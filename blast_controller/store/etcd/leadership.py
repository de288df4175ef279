"""Which controller leads: the one whose lease keeps the key `leader`.

The revision at which that key came into being never comes again and only grows: every write compares it. The epoch is
counted up in the transaction that makes the key, and so is the generation, which ToRs get as OpenFlow's generation id:
the seconds since 1970, or more. The revision would not do for that: in a new etcd it is below what ToRs have obeyed.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from blast_controller.store.etcd.connection import PAUSE, EtcdConnection
from blast_controller.store.etcd.errors import (
    DamagedEtcdJournalError,
    DeposedError,
    LeadershipLostError,
    LeaseLostError,
    StoreUnavailableError,
)
from blast_controller.store.etcd.keys import Keys
from blast_controller.store.etcd.lease import Lease
from blast_controller.store.etcd.methods import TXN
from blast_controller.store.etcd.proto import etcd_pb2 as api
from blast_controller.store.etcd.requests import changed_at, created_at, get, put, reading
from blast_controller.store.etcd.watching import LONGEST, Watching

log = logging.getLogger(__name__)

DEFAULT_TTL = 1
"""Seconds until others may lead after the leader's death."""
AGAIN = 0.2
"""Seconds between two looks at an etcd that is away."""


@dataclass(frozen=True, slots=True)
class Term:
    """One time of leading: the revision at which the leader's key came into being, and how many terms there were.

    `generation` is larger than that of every term before, and of every controller with another journal before.
    """

    revision: int
    epoch: int
    generation: int


@dataclass(frozen=True, slots=True)
class _Seen:
    """The keys as they were at `revision`."""

    leader: api.KeyValue | None
    epoch: api.KeyValue | None
    generation: api.KeyValue | None
    revision: int


class Leadership:
    """Leads for the controller that others reach at `address`, or waits until it may.

    `term` is None while it does not. `campaign` and `resign` belong to one thread at a time.
    """

    def __init__(self, connection: EtcdConnection, keys: Keys, address: str, ttl: int = DEFAULT_TTL) -> None:
        self.connection = connection
        self.keys = keys
        self.term: Term | None = None
        self._address = address
        self._ttl = ttl
        self._lease: Lease | None = None
        self._watching = Watching(connection)

    def campaign(self, seconds: float | None = None) -> Term:
        """Wait until no other controller is the leader, for at most `seconds` (None: forever), and take over.

        etcd may be unavailable meanwhile. After the timeout or `give_up`, raises LeadershipLostError if another
        controller is the leader, StoreUnavailableError if etcd does not answer. Raises JournalError for other faults.
        """
        end = None if seconds is None else time.monotonic() + seconds
        has_warned = False
        while True:
            left = None if end is None else max(0.0, end - time.monotonic())
            try:
                seen = self._look()
                if seen.leader is None or self._is_mine(seen.leader):
                    if self._try(seen):
                        break
                    continue
                self._wait(seen, left)
            except StoreUnavailableError as fault:
                if self._watching.given_up or (left is not None and left <= 0):
                    self._drop()
                    raise
                if not has_warned:
                    log.warning("leader election is not possible: %s", fault)
                has_warned = True
                self._watching.pause(AGAIN)
            except BaseException:
                self._drop()
                raise
        assert self.term is not None
        return self.term

    def holds_leadership(self) -> bool:
        """Return true if no other controller can be the leader yet.

        Uses the clock only and errs on the side of false.
        """
        lease = self._lease
        return self.term is not None and lease is not None and lease.holds()

    def leader(self) -> str | None:
        """Return the leader's address, None if there is no leader. Raises JournalError."""
        seen = self._look()
        return None if seen.leader is None else seen.leader.value.decode()

    def check(self, term: Term) -> None:
        """Raise DeposedError unless this term has lasted without interruption until now; otherwise JournalError."""
        leader = self._look().leader
        if leader is None or leader.create_revision != term.revision:
            raise DeposedError(None if leader is None else leader.value.decode())

    def lost(self) -> None:
        """Record that etcd reported another leader. From any thread."""
        self.term = None

    def resign(self) -> None:
        """Resign as leader; standbys are notified at once."""
        self.term = None
        self._drop()

    def give_up(self) -> None:
        """End a campaign that waits, and all later ones. From any thread."""
        self._watching.give_up()

    # ------------------------------------------------------------------------------------------------- campaign

    def _look(self) -> _Seen:
        keys = (self.keys.leader, self.keys.epoch, self.keys.generation)
        answer = self.connection.call(TXN, api.TxnRequest(success=[reading(get(key)) for key in keys]))
        found = [list(one.response_range.kvs) for one in answer.responses]
        leader, epoch, generation = (kvs[0] if kvs else None for kvs in found)
        return _Seen(leader, epoch, generation, answer.header.revision)

    def _is_mine(self, leader: api.KeyValue) -> bool:
        return self._lease is not None and self._lease.holds() and leader.lease == self._lease.number

    def _try(self, seen: _Seen) -> bool:
        """Try to become the leader; return false if another was faster or the outcome is unknown: then look again."""
        if seen.leader is not None:
            # The answer to an earlier try was lost on its way.
            epoch, generation = self._number(seen.epoch, "epoch"), self._number(seen.generation, "generation")
            self.term = Term(seen.leader.create_revision, epoch, generation)
            return True
        lease = self._have_lease()
        epoch = 1 + self._number(seen.epoch, "epoch")
        generation = max(1 + self._number(seen.generation, "generation"), int(time.time()))
        unchanged = changed_at(self.keys.epoch, seen.epoch.mod_revision if seen.epoch else 0)
        begin = api.TxnRequest(
            compare=[created_at(self.keys.leader, 0), unchanged],
            success=[
                put(self.keys.leader, self._address.encode(), lease.number),
                put(self.keys.epoch, str(epoch).encode()),
                put(self.keys.generation, str(generation).encode()),
            ],
        )
        try:
            answer = self.connection.call(TXN, begin)
        except LeaseLostError:
            self._drop()
            return False
        if answer.succeeded:
            self.term = Term(answer.header.revision, epoch, generation)
        return bool(answer.succeeded)

    def _number(self, found: api.KeyValue | None, name: str) -> int:
        if found is None:
            return 0
        try:
            return int(found.value)
        except ValueError:
            raise DamagedEtcdJournalError(self.keys.prefix, f"its {name} is not a number") from None

    def _wait(self, seen: _Seen, left: float | None) -> None:
        assert seen.leader is not None
        if self._watching.given_up or (left is not None and left <= 0):
            self._drop()
            raise LeadershipLostError(seen.leader.value.decode())
        # Had before it is needed, so that it costs no time when the leader dies.
        self._have_lease()
        if not self._watching.wait(self.keys.leader, seen.revision, LONGEST if left is None else left):
            self._watching.pause(PAUSE)

    def _have_lease(self) -> Lease:
        if self._lease is None or not self._lease.holds():
            self._drop()
            self._lease = Lease(self.connection, self._ttl)
        return self._lease

    def _drop(self) -> None:
        lease, self._lease = self._lease, None
        if lease is not None:
            lease.revoke()
