"""Budgets of search effort that need no clock."""

from __future__ import annotations

from collections.abc import Callable

Spent = Callable[[], float]
"""Share of the allowed effort that is used up; at 1 or more the search ends.

With time as the limit: `lambda: (clock() - began) / seconds`.
"""


class StepBudget:
    """A `Spent` that allows a number of calls, so that runs are bit-for-bit repeatable.

    The optimizer calls it once per pivot of its linear program, and then once for a few dozen moves.

    Parameters
    ----------
    limit : int
        Number of calls, at least 1; the last of them returns 1, which ends the search.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._looks = 0

    def __call__(self) -> float:
        """Count this call and return the share of the limit that is used up."""
        self._looks += 1
        return self._looks / self._limit
