"""Failover between several controllers, of which one is the leader: which one to call next, and how long to try.

A standby answers with `NotLeader` and the leader's address; a failed controller does not answer. The client repeats a
call elsewhere if it was certainly not executed, or if a second execution changes nothing. A request, for example, has a
key that the client chose, and submitting it twice submits it once.
"""

from __future__ import annotations

from collections.abc import Sequence

from blast_client.api.address import Address, AddressError, parse_address
from blast_client.api.calls import ClientClosedError, ControllerUnreachableError, NotConnectedError
from blast_client.api.errors import NotLeader
from blast_client.api.freshness import StaleAnswerError

ANSWER_WITHIN = 1.0
"""Maximum seconds for an answer if another controller can be called: a stopped process keeps its connections open."""
LONGEST_WAIT = 5.0
"""Maximum seconds of a waiting call, which is then repeated to detect that the controller failed."""
PAUSE = 0.05
"""Seconds to wait after all controllers failed to answer; a standby takes over in some hundreds of milliseconds."""


def parse_addresses(text: str) -> tuple[Address, ...]:
    """Parse addresses with commas between them; drop duplicates. Raises `AddressError`."""
    found = tuple(dict.fromkeys(parse_address(part.strip()) for part in text.split(",") if part.strip()))
    if not found:
        raise AddressError(f"{text!r} has no address of a controller: write HOST:PORT, with commas between several")
    return found


class Controllers:
    """The addresses of all controllers, and the `address` in use."""

    def __init__(self, addresses: Sequence[Address]) -> None:
        self._addresses = addresses
        self.address = addresses[0]

    def __len__(self) -> int:
        return len(self._addresses)

    def call_timeout(self, seconds: float) -> float:
        """Return the timeout in seconds of a call that can be repeated at another controller."""
        return seconds if len(self) == 1 else min(seconds, ANSWER_WITHIN)

    def longest_wait(self, seconds: float) -> float:
        """Return the time in seconds that one call waits for an event."""
        return seconds if len(self) == 1 else min(seconds, LONGEST_WAIT)

    def move(self, since: Address, leader: str | None) -> None:
        """Change from controller `since` to the leader that it named, if that is known, else to the next controller.

        Do nothing if another call has already changed the controller.
        """
        if self.address == since:
            following = self._addresses[(self._addresses.index(since) + 1) % len(self)]
            named = following if leader is None else parse_address(leader)
            self.address = named if named in self._addresses else following


class Search:
    """The search of one call for a controller that answers, until the time `end`."""

    def __init__(self, controllers: Controllers, safe: bool, end: float) -> None:
        self._controllers = controllers
        self._safe = safe
        self._end = end
        self._failures = 0

    def pause_after(self, error: ControllerUnreachableError | NotLeader, address: Address, now: float) -> float | None:
        """Leave the controller that caused an error; return the seconds before the next attempt, None to give up."""
        undone = self._safe or isinstance(error, NotConnectedError | NotLeader)
        if now >= self._end or not undone or isinstance(error, ClientClosedError):
            return None
        if len(self._controllers) == 1:
            # The controller will catch up with the state that the client knows.
            return PAUSE if isinstance(error, StaleAnswerError) else None
        self._controllers.move(address, error.address if isinstance(error, NotLeader) else None)
        self._failures += 1
        return 0.0 if self._failures % len(self._controllers) else PAUSE
