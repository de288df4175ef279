"""One of several controllers that share a journal in etcd."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from blast_controller.configuration.etcd import EtcdSection
from blast_controller.store.errors import StoreFault
from blast_controller.store.etcd.access import Access, TlsFiles, User
from blast_controller.store.etcd.connection import Connection
from blast_controller.store.etcd.followed import FollowedJournal
from blast_controller.store.etcd.keys import Keys
from blast_controller.store.etcd.leadership import Leadership
from blast_controller.store.etcd.presence import Presence
from blast_controller.store.etcd.store import EtcdStore, Policy
from blast_controller.store.interface import Entry
from blast_controller.store.retention import Retention
from blast_controller.succession.candidate import Candidate, Hooks
from blast_controller.succession.following import Following
from blast_controller.succession.succession import Watcher


@dataclass(frozen=True, slots=True)
class LeaderTerms:
    """What holds for who leads: the seconds of its lease, and what history it keeps."""

    lease: int
    retention: Retention


class EtcdSuccession:
    """As `Succession`. `address` is where others are sent to this controller.

    Raises StoreFault for files that cannot be read, ValueError for a prefix that is none.
    """

    def __init__(self, access: Access, keys: Keys, address: str, term: LeaderTerms) -> None:
        self._connection = Connection(access)
        self._leadership = Leadership(self._connection, keys, address, term.lease)
        self._followed = FollowedJournal(self._connection, keys)
        self._presence = Presence(self._connection, keys, address)
        self._following: Following | None = None
        self._candidate: Candidate | None = None
        self.store = EtcdStore(self._leadership, Policy(retention=term.retention))

    @property
    def generation(self) -> int:
        """The number of our time as the leader: larger than that of any leader before. Only while we lead."""
        term = self._leadership.term
        return 0 if term is None else term.generation

    @property
    def sequence(self) -> int:
        """That of the latest entry that we have written, or found when we came to lead."""
        return self.store.sequence

    def still_leads(self) -> bool:
        """Whether no other can lead yet; looks at the clock only."""
        return self._leadership.still_leads()

    def follow(self, watcher: Watcher) -> Following:
        """Who will look at the journal, once started, again and again."""
        self._following = Following(self._followed, watcher.show, watcher.meet)
        return self._following

    def stand(self, hooks: Hooks, reached: Callable[[], int]) -> None:
        """Lead when nobody does; `reached` counts the devices that have a connection to us."""
        self._candidate = Candidate(self.store, self._presence, hooks, self.still_leads, reached)
        self._candidate.start()

    def stop_following(self) -> None:
        """We lead."""
        if self._following is not None:
            self._following.stop()

    def others(self) -> int:
        """How many other controllers could lead. Raises StoreFault."""
        return len(self._presence.others())

    def history(self, after_sequence: int, limit: int) -> list[Entry]:
        """As `Store.journal`, whoever leads."""
        return self._followed.journal(after_sequence, limit)

    def leave(self) -> None:
        """Lead no more, if we did, and be no candidate."""
        self.stop_following()
        if self._candidate is not None:
            self._candidate.stop()
        self._leadership.give_up()
        self.store.close()
        with suppress(StoreFault):
            # It runs out by itself.
            self._presence.leave()
        self._connection.close()


def joined(section: EtcdSection, address: str, retention: Retention) -> EtcdSuccession:
    """The part in the journal that this table names. Raises StoreFault for files that cannot be read."""
    tls = user = None
    if section.ca is not None and section.certificate is not None and section.private_key is not None:
        tls = TlsFiles(section.ca, section.certificate, section.private_key)
    if section.user is not None and section.password_file is not None:
        user = User(section.user, section.password_file)
    access = Access(tuple(section.endpoints), tls, user)
    return EtcdSuccession(access, Keys(section.prefix), address, LeaderTerms(section.lease_s, retention))
