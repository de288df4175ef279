"""How much effort a search may still spend, without a clock in the search."""

from __future__ import annotations

from collections.abc import Callable

Spent = Callable[[], float]
"""Share of the allowed effort that is used up; at 1 or more the search ends.

With time as the limit: `lambda: (clock() - began) / seconds`.
"""


class Steps:
    """A `Spent` of `limit` looks, so that runs repeat bit for bit.

    The optimizer looks once a pivot of its linear program, and then once for a few dozen moves tried.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._looks = 0

    def __call__(self) -> float:
        """Count this look."""
        self._looks += 1
        return self._looks / self._limit
