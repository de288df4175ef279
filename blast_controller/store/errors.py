"""Faults of a store, each with a message that has the cause and the remedy.

`StoreUsageError` is a mistake of the controller itself and has changed nothing; all others are faults of the machine
or the operator.
"""

from __future__ import annotations

from pathlib import Path


class JournalError(Exception):
    """A failure to store or read data."""


# ---------------------------------------------------------------------------------------------------- ours


class StoreUsageError(JournalError):
    """The controller handed the store something impossible; nothing of that commit was written."""


class DoubleHeldError(StoreUsageError):
    """Two live reservations would hold one element (invariant I1)."""

    def __init__(self, element: str, holder: str, requested_by: str) -> None:
        super().__init__(f"reservation {requested_by} needs {element}, which reservation {holder} holds")
        self.element = element
        self.holder = holder
        self.requested_by = requested_by


class UnstorableError(StoreUsageError):
    """A record that cannot be written, or read back, as it is."""

    def __init__(self, kind: str, key: str, reason: str) -> None:
        super().__init__(f"the {kind} {key!r} cannot be stored: {reason}")


class StoreUnreachableError(JournalError):
    """The backend of the store does not answer; it may recover by itself."""


class LockLostError(JournalError):
    """Another controller has taken over the journal: writes of this one are void."""


class JournalNotOpenError(StoreUsageError):
    """The store was not opened, or is closed already."""

    def __init__(self) -> None:
        super().__init__("the journal is not open")


# -------------------------------------------------------------------------------------- the machine's, the operator's


class DiskFullError(JournalError):
    """There is no room for the commit; the store stays usable, and a later commit may succeed."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"the disk of the journal {path} is full: free space there; until then no requests are admitted"
        )


class DiskFailedError(JournalError):
    """Reading or writing failed (EIO and its like).

    Whether the commit is on disk is open until a later one succeeds or the store is opened again.
    """

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"the journal {path} cannot be read or written ({reason}): check the disk under it")


class NotAccessibleError(JournalError):
    """File or folder are missing or may not be used."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"the journal {path} cannot be opened ({reason}): its directory must exist, and the controller's user "
            "must have read and write permission on both"
        )


class JournalLockedError(JournalError):
    """Another process has the journal. `pid` is that process, None if unknown."""

    def __init__(self, path: Path, pid: int | None) -> None:
        holder = f"process {pid}" if pid else "another process"
        super().__init__(f"the journal {path} is in use by {holder}: only one controller can use it; stop that one")
        self.pid = pid


class DamagedJournalError(JournalError):
    """The file is no whole journal. It is left as it is, never replaced by an empty one."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"the journal {path} is damaged ({reason}): restore it from a backup, or move it and its -wal file "
            "away to begin a new journal, which tears down all light trees"
        )


class JournalSchemaError(JournalError):
    """Another release wrote the file."""

    def __init__(self, path: Path, found: int, known: int) -> None:
        super().__init__(
            f"the journal {path} has schema {found} and this release reads schema {known}: run the release that wrote "
            "it, or move it and its -wal file away to begin a new journal, which tears down all light trees"
        )
