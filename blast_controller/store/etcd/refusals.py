"""Meaning of etcd's errors by their text, which is part of its API: many share one gRPC code."""

from __future__ import annotations

from collections.abc import Callable

from blast_controller.store.errors import JournalError
from blast_controller.store.etcd.errors import (
    CredentialsRefusedError,
    EtcdRefusalError,
    EtcdSpaceError,
    LeaseLostError,
    RevisionCompactedError,
)

_MEANING: tuple[tuple[str, Callable[[str, str], JournalError]], ...] = (
    ("database space exceeded", lambda endpoints, _: EtcdSpaceError(endpoints)),
    ("requested lease not found", lambda *_: LeaseLostError()),
    ("revision has been compacted", lambda *_: RevisionCompactedError()),
    ("request is too large", EtcdRefusalError),
    ("too many operations", EtcdRefusalError),
    ("duplicate key given", EtcdRefusalError),
    ("permission denied", CredentialsRefusedError),
    ("user name is empty", CredentialsRefusedError),
    ("authentication failed", CredentialsRefusedError),
    ("authentication is not enabled", CredentialsRefusedError),
    ("certificate", CredentialsRefusedError),
)
_LOGIN_OVER = ("invalid auth token", "revision of auth store is old")
_NOT_DONE = ("failed to connect", *_LOGIN_OVER)
_UNANSWERED = ("Deadline Exceeded",)


def meaning(endpoints: str, details: str) -> JournalError | None:
    """Return the fault behind an answer that another try would not change; None: try again, perhaps elsewhere."""
    return next((fault(endpoints, details) for words, fault in _MEANING if words.lower() in details.lower()), None)


def login_is_over(details: str) -> bool:
    """Return true if the token expired or users changed: a new login is needed."""
    return any(words in details for words in _LOGIN_OVER)


def is_surely_not_done(details: str) -> bool:
    """Return true if no member can have executed the request, now or later."""
    return any(words in details.lower() for words in _NOT_DONE)


def as_reason(details: str | None) -> str:
    """Return gRPC's message as part of a sentence: its last line, truncated."""
    last = (details or "no answer").strip().splitlines()[-1]
    return "no answer in time" if last in _UNANSWERED else last[:400]
