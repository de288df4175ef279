"""The phases of a change of the configuration, and what follows each answer of the device: see `transaction.py`."""

from __future__ import annotations

from enum import Enum, auto


class TransactionOutcome(Enum):
    """Ends of a change."""

    DONE = auto()
    """It is in effect."""
    BUSY = auto()
    """Another session holds a lock; nothing was done."""
    REFUSED = auto()
    """The device refused it, or a part of it."""
    WITHHELD = auto()
    """The condition does not hold; nothing was done."""


class TransactionPhase(Enum):
    """A request of a change."""

    LOCK_RUNNING = auto()
    LOCK_CANDIDATE = auto()
    READ = auto()
    RESET = auto()
    EDIT = auto()
    COMMIT = auto()


class Answer(Enum):
    """An answer of the device, as far as the next step depends on it."""

    DONE = auto()
    BUSY = auto()
    UNSUPPORTED = auto()
    REFUSED = auto()
    WITHHELD = auto()


P, A, O = TransactionPhase, Answer, TransactionOutcome  # noqa: E741 - the table is to fit on a page
TRANSITIONS: dict[tuple[TransactionPhase, Answer], TransactionPhase | TransactionOutcome] = {
    (P.LOCK_RUNNING, A.DONE): P.LOCK_CANDIDATE,
    (P.LOCK_RUNNING, A.UNSUPPORTED): P.LOCK_CANDIDATE,
    (P.LOCK_RUNNING, A.BUSY): O.BUSY,
    (P.LOCK_RUNNING, A.REFUSED): O.REFUSED,
    (P.LOCK_CANDIDATE, A.DONE): P.READ,
    (P.LOCK_CANDIDATE, A.UNSUPPORTED): P.READ,
    (P.LOCK_CANDIDATE, A.BUSY): O.BUSY,
    (P.LOCK_CANDIDATE, A.REFUSED): O.REFUSED,
    (P.READ, A.DONE): P.RESET,
    (P.READ, A.WITHHELD): O.WITHHELD,
    (P.READ, A.REFUSED): O.REFUSED,
    (P.RESET, A.DONE): P.EDIT,
    (P.RESET, A.REFUSED): O.REFUSED,
    (P.EDIT, A.DONE): P.COMMIT,
    (P.EDIT, A.REFUSED): O.REFUSED,
    (P.COMMIT, A.DONE): O.DONE,
    (P.COMMIT, A.REFUSED): O.REFUSED,
}
