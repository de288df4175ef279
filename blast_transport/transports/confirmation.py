"""When a phase whose hosts confirm nothing is over all the same. No clock."""

from __future__ import annotations

_TIMEOUT_SECONDS = 1.0
"""For a report that is on its way when all data has arrived."""


class Confirmation:
    """Confirmation that the hosts of a phase pass back to the sender; any host on the path may withhold it."""

    def __init__(self) -> None:
        self._complete_since: float | None = None

    def is_overdue(self, complete: bool, now: float) -> bool:
        """Return whether every receiver has reported for a second that it holds everything (`complete`)."""
        if not complete:
            self._complete_since = None
        elif self._complete_since is None:
            self._complete_since = now
        return self._complete_since is not None and now >= self._complete_since + _TIMEOUT_SECONDS
