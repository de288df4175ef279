"""One of several controllers that share a journal in etcd."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from blast_controller.configuration.etcd import EtcdSection
from blast_controller.store.errors import JournalError
from blast_controller.store.etcd.access import Access, EtcdTlsFiles, User
from blast_controller.store.etcd.connection import EtcdConnection
from blast_controller.store.etcd.followed import FollowedJournal
from blast_controller.store.etcd.keys import Keys
from blast_controller.store.etcd.leadership import Leadership
from blast_controller.store.etcd.presence import Presence
from blast_controller.store.etcd.store import EtcdStore, StorePolicy
from blast_controller.store.interface import Entry
from blast_controller.store.retention import Retention
from blast_controller.succession.candidate import Candidate, Hooks
from blast_controller.succession.following import Following
from blast_controller.succession.succession import Watcher


@dataclass(frozen=True, slots=True)
class LeaderTerms:
    """The settings of a leader: the length of its lease in seconds, and the retention of history."""

    lease: int
    retention: Retention


class EtcdSuccession:
    """A Succession by etcd. `address` is the one to which others refer clients of this controller.

    Raises CredentialsUnreadableError.
    """

    def __init__(self, access: Access, keys: Keys, address: str, term: LeaderTerms) -> None:
        self._connection = EtcdConnection(access)
        self._leadership = Leadership(self._connection, keys, address, term.lease)
        self._followed = FollowedJournal(self._connection, keys)
        self._presence = Presence(self._connection, keys, address)
        self._following: Following | None = None
        self._candidate: Candidate | None = None
        self.store = EtcdStore(self._leadership, StorePolicy(retention=term.retention))

    @property
    def generation(self) -> int:
        """Return the number of this controller's term as the leader; 0 while it is not the leader."""
        term = self._leadership.term
        return 0 if term is None else term.generation

    @property
    def sequence(self) -> int:
        """Return the sequence of the latest entry written, or found when this controller became the leader."""
        return self.store.sequence

    def holds_leadership(self) -> bool:
        """Return true if no other controller can be the leader yet; uses the clock only."""
        return self._leadership.holds_leadership()

    def follow(self, watcher: Watcher) -> Following:
        """Return a follower of the journal, to be started."""
        self._following = Following(self._followed, watcher.show, watcher.meet)
        return self._following

    def stand(self, hooks: Hooks, reached: Callable[[], int]) -> None:
        """Become a candidate for leadership; `reached` counts the devices connected to this controller."""
        self._candidate = Candidate(self.store, self._presence, hooks, self.holds_leadership, reached)
        self._candidate.start()

    def stop_following(self) -> None:
        """Stop following: this controller is the leader."""
        if self._following is not None:
            self._following.stop()

    def others(self) -> int:
        """Return the number of other candidates. Raises JournalError."""
        return len(self._presence.others())

    def history(self, after_sequence: int, limit: int) -> list[Entry]:
        """Read entries like `Store.journal`, also on a standby."""
        return self._followed.journal(after_sequence, limit)

    def leave(self) -> None:
        """Resign as leader and end the candidacy."""
        self.stop_following()
        if self._candidate is not None:
            self._candidate.stop()
        self._leadership.give_up()
        self.store.close()
        with suppress(JournalError):
            # It runs out by itself.
            self._presence.leave()
        self._connection.close()


def joined(section: EtcdSection, address: str, retention: Retention) -> EtcdSuccession:
    """Return the succession by the journal that this table names.

    Raises CredentialsUnreadableError, ValueError for an empty prefix.
    """
    tls = user = None
    if section.ca is not None and section.certificate is not None and section.private_key is not None:
        tls = EtcdTlsFiles(section.ca, section.certificate, section.private_key)
    if section.user is not None and section.password_file is not None:
        user = User(section.user, section.password_file)
    access = Access(tuple(section.endpoints), tls, user)
    return EtcdSuccession(access, Keys(section.prefix), address, LeaderTerms(section.lease_s, retention))
