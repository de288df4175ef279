"""Controllers that stand by tell of what they have seen, each a little late: who asks now this one and now that must
not go back in time.

Answers say up to which entry of the journal they tell (`journalSequence`). One of a controller that stands by that is
behind what was told before is not taken. What the leader says is so, whatever was told before: a journal may have been
restored from a backup.
"""

from __future__ import annotations

from typing import TypeVar

from blast_client.address import Address
from blast_client.calls import ControllerUnreachable

T = TypeVar("T")


class Outdated(ControllerUnreachable):
    """The controller stands by, and has not heard yet of what was told before."""

    def __init__(self, address: Address) -> None:
        Exception.__init__(
            self,
            f"the controller at {address} stands by and tells of what is older than what was told before: ask again, "
            "or name the controller that leads as well",
        )
        self.address = address


class Freshness:
    """How far answers have told so far. `of` may be called from one thread at a time."""

    def __init__(self) -> None:
        self._seen = 0

    def of(self, answer: T, address: Address) -> T:
        """The answer of the controller at this address. Raises Outdated."""
        sequence = getattr(answer, "journalSequence", None)
        if sequence is None:
            return answer
        if getattr(answer, "staleMs", None) is not None and sequence < self._seen:
            raise Outdated(address)
        self._seen = sequence
        return answer
