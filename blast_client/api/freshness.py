"""Monotonic reads across several controllers, whose state may lag.

An answer has the sequence number of the latest journal entry that it includes (`journalSequence`). The client rejects
an answer with a number below that of an answer before the call: a standby lags, or the leader has not yet seen the
confirmation of its own latest entry, which a standby has already reported. If the leader repeats the lower number for
`BELIEVED_AFTER` seconds, the client accepts it: the journal was restored from a backup.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from blast_client.api.address import Address
from blast_client.api.calls import ControllerUnreachableError

T = TypeVar("T")

BELIEVED_AFTER = 5.0
"""Seconds after which a leader has either seen its latest entry or lost leadership."""


class StaleAnswerError(ControllerUnreachableError):
    """The answer of a controller is older than a previous answer."""

    def __init__(self, address: Address) -> None:
        Exception.__init__(
            self,
            f"the answer of the controller at {address} is older than a previous answer: try again, or give the "
            "leader's address as well",
        )
        self.address = address


class Freshness:
    """The highest journal sequence number of answers (`known`); read it before each call. `clock` is monotonic."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.known = 0
        self._clock = clock
        self._doubted_since: float | None = None

    def note(self, answer: T) -> T:
        """Return an answer to a change, which is never repeated, and update `known`."""
        self.known = max(self.known, getattr(answer, "journalSequence", None) or 0)
        return answer

    def of(self, answer: T, known: int, address: Address) -> T:
        """Return an answer to a call that began when `known` was known, and update the state.

        Raises StaleAnswerError if the answer is older.
        """
        sequence = getattr(answer, "journalSequence", None)
        if sequence is None:
            return answer
        if sequence < known:
            self._doubt(getattr(answer, "staleMs", None) is None, address)
            self.known = sequence
        self._doubted_since = None
        self.known = max(self.known, sequence)
        return answer

    def _doubt(self, is_leader: bool, address: Address) -> None:
        now = self._clock()
        since = now if self._doubted_since is None else self._doubted_since
        if is_leader:
            self._doubted_since = since
        if not is_leader or now - since < BELIEVED_AFTER:
            raise StaleAnswerError(address)
