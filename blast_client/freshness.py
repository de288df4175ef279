"""Controllers that stand by tell of what they have seen, each a little late: who asks now this one and now that must
not go back in time.

Answers say up to which entry of the journal they tell (`journalSequence`). One that is behind what was told before its
call began is not taken: of one that stands by, or of a leader whose latest change is already seen elsewhere and not yet
by itself. A leader that goes on saying so is believed: the journal was restored from a backup.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from blast_client.address import Address
from blast_client.calls import ControllerUnreachable

T = TypeVar("T")

BELIEVED_AFTER = 5.0
"""Seconds in which a leader hears what has become of its latest change, or leads no more."""


class Outdated(ControllerUnreachable):
    """What a controller tells of is older than what was told before."""

    def __init__(self, address: Address) -> None:
        Exception.__init__(
            self,
            f"the controller at {address} tells of what is older than what was told before: ask again, or name the "
            "controller that leads as well",
        )
        self.address = address


class Freshness:
    """How far answers have told so far, on a steady `clock`. `known` is to be kept when a call begins."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.known = 0
        self._clock = clock
        self._doubted_since: float | None = None

    def note(self, answer: T) -> T:
        """An answer to a change, which is not asked for again."""
        self.known = max(self.known, getattr(answer, "journalSequence", None) or 0)
        return answer

    def of(self, answer: T, known: int, address: Address) -> T:
        """The answer of the controller at this address to a call that began when so much was known. Raises Outdated."""
        sequence = getattr(answer, "journalSequence", None)
        if sequence is None:
            return answer
        if sequence < known:
            self._doubt(getattr(answer, "staleMs", None) is None, address)
            self.known = sequence
        self._doubted_since = None
        self.known = max(self.known, sequence)
        return answer

    def _doubt(self, leads: bool, address: Address) -> None:
        now = self._clock()
        since = now if self._doubted_since is None else self._doubted_since
        if leads:
            self._doubted_since = since
        if not leads or now - since < BELIEVED_AFTER:
            raise Outdated(address)
