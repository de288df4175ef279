"""Limits of connections and requests by host and account, so that no client blocks others.

A connection is a guest (`serving/admission_slots.py`) until one of its requests is authenticated, and stays one while
it requests only public resources: static files, health. Thus slow readers of either kind cannot starve the other.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Hashable

from blast_controller.rpc.clients.rates import CallRates, Rate

MAX_GUESTS, MAX_GUESTS_PER_HOST = 64, 32
MAX_KNOWN, MAX_PER_ACCOUNT = 256, 64
"""Connections; a page has one that stays open, and needs some more at first."""
FOR_OPERATORS = 32
"""Of the known connections the last ones are for operators."""
GUEST_RATE = Rate(20.0, 300)
"""Requests of one host without an account. A page consists of some sixty files, which browsers keep."""
HEALTH_RATE = Rate(20.0, 40)
"""Requests of one host for `/livez` and `/readyz`, apart from all else: a flood of that does not delay them."""
ACCOUNT_RATE = Rate(20.0, 200)


class ConnectionLimitError(Exception):
    """The account, or the server, has reached its limit of connections."""


class ClientCounts:
    """Counts what belongs to hosts and accounts. `share` is that of `Descriptors`. For one thread."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, share: Callable[[int], int] = lambda bound: bound
    ) -> None:
        self._clock = clock
        self._max_known, self._for_operators = share(MAX_KNOWN), share(FOR_OPERATORS)
        self._known: Counter[Hashable] = Counter()
        self._guests = CallRates(GUEST_RATE)
        self._health = CallRates(HEALTH_RATE)
        self._accounts = CallRates(ACCOUNT_RATE)

    def enter(self, account: Hashable, is_operator: bool) -> None:
        """Count a connection of this account. Raises ConnectionLimitError."""
        if self._known[account] >= MAX_PER_ACCOUNT:
            raise ConnectionLimitError(f"Your account has {MAX_PER_ACCOUNT} connections, its limit: close one.")
        if self._known.total() >= self._max_known - (0 if is_operator else self._for_operators):
            raise ConnectionLimitError("The server has reached its limit of connections: try again later.")
        self._known[account] += 1

    def leave(self, account: Hashable) -> None:
        """Count a connection of this account no longer."""
        self._known[account] -= 1
        if not self._known[account]:
            del self._known[account]

    def guest_wait(self, host: str) -> float:
        """Count a request, and return 0; else return the seconds until one may come from this host."""
        return self._guests.seconds_until_free(host, self._clock())

    def health_wait(self, host: str) -> float:
        """Count a request for health, and return 0; else return the seconds until one may come from this host."""
        return self._health.seconds_until_free(host, self._clock())

    def account_wait(self, account: Hashable) -> float:
        """Count a request, and return 0; else return the seconds until this account may send one."""
        return self._accounts.seconds_until_free(account, self._clock())
