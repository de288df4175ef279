"""Ended requests within their retention, and the order of removal beyond the limit.

A client that submits and withdraws a hundred requests a second fills only its own share: the tenant with most of them
loses its oldest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from blast_controller.core.model.requests import RequestKey


class EndedRequests:
    """The keys of ended requests: of each tenant in the order in which they ended."""

    def __init__(self) -> None:
        self._of: defaultdict[str, dict[RequestKey, None]] = defaultdict(dict)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, key: RequestKey) -> None:
        """Add an ended request."""
        own = self._of[key[0]]
        self._count += key not in own
        own[key] = None

    def discard(self, key: RequestKey) -> None:
        """Remove a forgotten request."""
        own = self._of.get(key[0], {})
        if key in own:
            del own[key]
            self._count -= 1
        if not own:
            self._of.pop(key[0], None)

    def oldest_of_fullest(self) -> Iterator[RequestKey]:
        """Yield the keys of the tenant with most, oldest first; none where there are none."""
        fullest = max(self._of, key=lambda tenant: len(self._of[tenant]), default=None)
        return iter(() if fullest is None else self._of[fullest])
