"""Several controllers of which one decides: which to ask next, and for how long to go on looking.

Whoever stands by says who leads (`NotLeader`); of a controller that is gone, or that has stopped, nothing is heard.
What was certainly not carried out may be asked elsewhere; what may have been, only if its repetition changes nothing: a
request has the client's own key, and asked twice it is the same one.
"""

from __future__ import annotations

from collections.abc import Sequence

from blast_client.address import Address, BadAddress, parse_address
from blast_client.calls import ClientClosed, ControllerUnreachable, NotReached
from blast_client.errors import NotLeader
from blast_client.freshness import Outdated

ANSWER_WITHIN = 1.0
"""Seconds for an answer that may be had of another controller: one that is stopped keeps its connections."""
LONGEST_WAIT = 5.0
"""Seconds that one controller is waited for before it is asked again, which shows whether it is still there."""
PAUSE = 0.05
"""Seconds after all were asked in vain; a new leader takes some hundreds of milliseconds."""


def parse_addresses(text: str) -> tuple[Address, ...]:
    """Addresses with commas between them, each once, in their order. Raises `BadAddress`."""
    found = tuple(dict.fromkeys(parse_address(part.strip()) for part in text.split(",") if part.strip()))
    if not found:
        raise BadAddress(f"{text!r} names no controller: write HOST:PORT, with commas between several")
    return found


class Controllers:
    """All that may be asked, and which of them is: `address`."""

    def __init__(self, addresses: Sequence[Address]) -> None:
        self._addresses = addresses
        self.address = addresses[0]

    def __len__(self) -> int:
        return len(self._addresses)

    def call_timeout(self, seconds: float) -> float:
        """How many of so many seconds to wait for the answer to what another may be asked, too."""
        return seconds if len(self) == 1 else min(seconds, ANSWER_WITHIN)

    def longest_wait(self, seconds: float) -> float:
        """How many of so many seconds to wait, in one call, for something to happen."""
        return seconds if len(self) == 1 else min(seconds, LONGEST_WAIT)

    def move(self, since: Address, leader: str | None) -> None:
        """Ask another than `since`, unless that has been done: the leader that it named, if we know that one."""
        if self.address == since:
            following = self._addresses[(self._addresses.index(since) + 1) % len(self)]
            told = following if leader is None else parse_address(leader)
            self.address = told if told in self._addresses else following


class Search:
    """One call's way through the controllers, until `end` (on any clock, as `now`)."""

    def __init__(self, controllers: Controllers, safe: bool, end: float) -> None:
        self._controllers = controllers
        self._safe = safe
        self._end = end
        self._asked_in_vain = 0

    def pause_after(self, error: ControllerUnreachable | NotLeader, address: Address, now: float) -> float | None:
        """Move on from `address`, which this came of; the seconds to wait before asking again, None to give up."""
        undone = self._safe or isinstance(error, NotReached | NotLeader)
        if now >= self._end or not undone or isinstance(error, ClientClosed):
            return None
        if len(self._controllers) == 1:
            # It will hear of what was told before.
            return PAUSE if isinstance(error, Outdated) else None
        self._controllers.move(address, error.address if isinstance(error, NotLeader) else None)
        self._asked_in_vain += 1
        return 0.0 if self._asked_in_vain % len(self._controllers) else PAUSE
