"""Connections that wait for requests: a request made by `request` is withdrawn if all its connections close."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from blast_controller.core.model.errors import RejectedError
from blast_controller.core.model.requests import RequestKey

MAX_PER_ACCOUNT = 4096
"""Requests of waiting clients whose connections are remembered: memory that an account may take."""


class Attachments:
    """Connections by request and requests by connection, until the request is granted or over. Used by one thread.

    A wait that ends without an answer leaves its connection attached: the client may ask again.
    """

    def __init__(self, max_per_account: int = MAX_PER_ACCOUNT) -> None:
        self._limit = max_per_account
        self._requests: dict[int, set[RequestKey]] = {}
        self._connections: dict[RequestKey, dict[int, Hashable]] = {}
        self._count: Counter[Hashable] = Counter()
        self._watched: set[RequestKey] = set()

    def __len__(self) -> int:
        return self._count.total()

    def begin_watch(self, request: RequestKey) -> bool:
        """Register the caller's wait.

        Return true if it must call `settle` at the request's grant or end: the first caller must.
        """
        first = request not in self._watched
        self._watched.add(request)
        return first

    def check(self, account: Hashable) -> None:
        """Raise RejectedError if an account's connections already wait for the maximum number of requests."""
        if self._count[account] >= self._limit:
            raise RejectedError(
                "too_many_waiting",
                f"Your connections already wait for {self._limit} grants, the limit: wait for a grant, withdraw a "
                "request, or use submit.",
            )

    def add(self, connection: int, request: RequestKey, account: Hashable) -> None:
        """Register that a connection waits for a request."""
        holders = self._connections.setdefault(request, {})
        if connection not in holders:
            holders[connection] = account
            self._requests.setdefault(connection, set()).add(request)
            self._count[account] += 1

    def settle(self, request: RequestKey) -> None:
        """End all waits for a request that is granted or over."""
        self._watched.discard(request)
        for connection in list(self._connections.get(request, ())):
            self._remove(connection, request)

    def leave(self, connection: int) -> tuple[RequestKey, ...]:
        """Remove a connection; return the requests for which no connection waits any longer."""
        requests = tuple(self._requests.get(connection, ()))
        for request in requests:
            self._remove(connection, request)
        return tuple(request for request in requests if request not in self._connections)

    def _remove(self, connection: int, request: RequestKey) -> None:
        account = self._connections[request].pop(connection)
        if not self._connections[request]:
            del self._connections[request]
        self._requests[connection].remove(request)
        if not self._requests[connection]:
            del self._requests[connection]
        self._count[account] -= 1
        if not self._count[account]:
            del self._count[account]
