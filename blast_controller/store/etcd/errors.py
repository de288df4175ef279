"""Faults of the journal in etcd, each with a message that has the cause and the remedy."""

from __future__ import annotations

from pathlib import Path

from blast_controller.store.errors import DiskFullError, JournalError, LockLostError, StoreUnreachableError


class StoreUnavailableError(StoreUnreachableError):
    """No member of etcd answered in time.

    It is unknown whether the data was written until a later commit succeeds or the store is opened again, unless
    `may_be_done` is false: then no member can have received it.
    """

    def __init__(self, endpoints: str, reason: str, may_be_done: bool = True) -> None:
        super().__init__(
            f"etcd cannot be reached at {endpoints} ({reason}): check that a majority of its members runs and "
            "that this machine reaches one; until then no requests are admitted"
        )
        self.may_be_done = may_be_done


class EtcdSpaceError(DiskFullError):
    """etcd has reached its quota (alarm NOSPACE). Nothing was written; the store stays usable."""

    def __init__(self, endpoints: str) -> None:
        # Not DiskFullError's words: here room is not made on a disk.
        JournalError.__init__(
            self,
            f"etcd at {endpoints} has reached its space quota: raise its --quota-backend-bytes, or compact and "
            "defragment it, then run etcdctl alarm disarm; until then no requests are admitted",
        )


class CredentialsRefusedError(JournalError):
    """etcd rejects the certificate, user or password of this controller, or its access to the journal's keys."""

    def __init__(self, endpoints: str, reason: str) -> None:
        super().__init__(
            f"etcd at {endpoints} refuses the controller ({reason}): check certificate, user and password, and that "
            "the user's role may read and write the prefix of the journal"
        )


class CredentialsUnreadableError(JournalError):
    """A file with a certificate, a key or a password cannot be read."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"{path}, a credential for etcd, cannot be read ({reason}): make it readable, or configure another file"
        )


class LeadershipLostError(JournalError):
    """Another controller is the leader. `address` is its address, None if unknown."""

    def __init__(self, address: str | None) -> None:
        where = f" at {address}" if address else ""
        super().__init__(f"another controller{where} is the leader: use that one, or wait until this one takes over")
        self.address = address


class DeposedError(LeadershipLostError, LockLostError):
    """Loss of leadership: etcd refused the write of this controller.

    Nothing of that write is stored, except for changes that an earlier StoreUnavailableError left open; if `is_known`
    is false, the other leader has progressed too far to determine their outcome. Opening the store again, with a new
    election, is the only way to continue.
    """

    def __init__(self, address: str | None, is_known: bool = True) -> None:
        super().__init__(address)
        where = f" to the one at {address}" if address else ""
        open_end = "" if is_known else "; the outcome of its last commit is unknown"
        self.args = (
            f"this controller lost leadership{where} and writes nothing until it is the leader again{open_end}",
        )


class DamagedEtcdJournalError(JournalError):
    """The data under the prefix is not a complete journal. It is left unchanged."""

    def __init__(self, prefix: str, reason: str) -> None:
        super().__init__(
            f"the journal in etcd under {prefix} is damaged ({reason}): restore it from a backup, or set another "
            "prefix to begin a new journal, which tears down all light trees"
        )


class EtcdFormatError(JournalError):
    """Another release wrote the journal."""

    def __init__(self, prefix: str, found: int, known: int) -> None:
        super().__init__(
            f"the journal in etcd under {prefix} has format {found} and this release reads format {known}: run the "
            "release that wrote it, or set another prefix to begin a new journal, which tears down all light trees"
        )


class EtcdRefusalError(JournalError):
    """etcd refuses a request itself, such as one that is too large for its configuration. Nothing was written."""

    def __init__(self, endpoints: str, reason: str) -> None:
        super().__init__(
            f"etcd at {endpoints} refuses a request ({reason}): run it with --max-request-bytes and --max-txn-ops "
            "at least at their default values"
        )


class LeaseLostError(JournalError):
    """The lease expired or was revoked. The caller must acquire a new one."""

    def __init__(self) -> None:
        super().__init__("the controller's lease in etcd expired: this controller is not the leader")


class RevisionCompactedError(JournalError):
    """The requested revision is compacted. The reader must start again."""

    def __init__(self) -> None:
        super().__init__("etcd was compacted while the journal was read: read it again")
