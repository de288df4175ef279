"""The inbox of one thread: devices first, then accounts in turns, one piece of work each.

However much one account queues, the next piece of another waits for one of its pieces, not for all. Work that is
committed together is that of one account alone, with some events of devices, or one round: an account with a single
piece does not wait for the effects of many others.
"""

from __future__ import annotations

import queue
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Hashable
from typing import Generic, TypeVar

Work = TypeVar("Work")

MAX_URGENT = 16
"""In a row, while an account waits for its turn: devices may talk without end."""
MAX_WITH_DEVICES = 64
"""Pieces of one account that are committed together with events of devices, for which others may wait."""


class Inbox(Generic[Work]):
    """Filled by any thread, read by one. The pieces of one account, and those without an account, keep their order."""

    def __init__(self) -> None:
        # One token for each piece: to wait for one is a matter of the queue, to choose one is ours.
        self._tokens: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._urgent: deque[Work] = deque()
        self._of: OrderedDict[Hashable, deque[Work]] = OrderedDict()
        self._last: deque[Work] = deque()
        self._in_a_row = 0
        self._together: Counter[Hashable] = Counter()
        """The pieces returned since `begin` by account; None: those without an account."""

    def put(self, work: Work) -> None:
        """Add a piece without an account."""
        with self._lock:
            self._urgent.append(work)
        self._tokens.put(None)

    def put_first(self, work: Work) -> None:
        """Add a piece without an account that goes before all others."""
        with self._lock:
            self._urgent.appendleft(work)
        self._tokens.put(None)

    def put_for(self, account: Hashable, work: Work) -> None:
        """Add what an account asks for."""
        with self._lock:
            self._of.setdefault(account, deque()).append(work)
        self._tokens.put(None)

    def put_last(self, work: Work) -> None:
        """Add what is got when nothing else is there."""
        with self._lock:
            self._last.append(work)
        self._tokens.put(None)

    @property
    def is_empty(self) -> bool:
        """Return true if no piece waits."""
        return self._tokens.empty()

    def begin(self) -> None:
        """Begin a batch: the pieces returned from here on are committed together."""
        with self._lock:
            self._together.clear()

    def get(self, timeout: float | None) -> Work:
        """Return the next piece, waiting at most `timeout` seconds (None: forever). Raises queue.Empty."""
        self._tokens.get(timeout=timeout)
        with self._lock:
            return self._next()

    def get_more(self) -> Work:
        """Return the next piece of the current batch. Raises queue.Empty."""
        self._tokens.get_nowait()
        with self._lock:
            if self._begins_another_round():
                self._tokens.put(None)
                raise queue.Empty
            return self._next()

    def _begins_another_round(self) -> bool:
        account = next(iter(self._of), None)
        if account not in self._together or self._is_urgent():
            return False
        others = self._together.keys() - {account, None}
        return bool(others) or (None in self._together and self._together[account] >= MAX_WITH_DEVICES)

    def _is_urgent(self) -> bool:
        return bool(self._urgent) and (self._in_a_row < MAX_URGENT or not self._of)

    def _next(self) -> Work:
        if self._is_urgent():
            self._in_a_row += 1
            self._together[None] += 1
            return self._urgent.popleft()
        self._in_a_row = 0
        return self._next_of_accounts() if self._of else self._last.popleft()

    def _next_of_accounts(self) -> Work:
        account, pieces = self._of.popitem(last=False)
        self._together[account] += 1
        work = pieces.popleft()
        if pieces:
            self._of[account] = pieces
        return work
