"""Pending groups that lack nothing but splitters, in lines by what they need.

All groups of a line need the same: splitters for so many leaves, out of the same allowance. So one look at the
splitters says for a whole line whether it must go on waiting, however long it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from heapq import heappop, heappush

from algorithms.b_matching.group import Group

Waiting = tuple[float, int, Group]
"""A pending group as (minus its score, order of arrival, group): the smallest is served first."""

Enough = Callable[[str | None, int], bool]
"""(tenant, leaves) -> whether the splitters suffice for such a tree now; more leaves never need less."""


class SplitterQueue:
    """Lines of waiting groups, best first in each; a line's tenant is None where none of its groups is limited."""

    def __init__(self) -> None:
        self._lines: defaultdict[str | None, dict[int, list[Waiting]]] = defaultdict(dict)

    def add(self, tenant: str | None, waiting: Waiting) -> None:
        """Let this group wait in the line for what it needs; `tenant` if an allowance limits it, else None."""
        heappush(self._lines[tenant].setdefault(waiting[2].leaves, []), waiting)

    def moving(self, enough: Enough) -> list[Iterator[Waiting]]:
        """The lines that need not wait, each to be taken from, best first, for as long as there is `enough` for it.

        Whoever is taken and not served is to be added again before the next is taken.
        """
        found = []
        for tenant, lines in self._lines.items():
            for leaves in sorted(lines):
                if not enough(tenant, leaves):
                    break
                found.append(_take(lines, leaves, partial(enough, tenant)))
        return found


def _take(lines: dict[int, list[Waiting]], leaves: int, enough: Callable[[int], bool]) -> Iterator[Waiting]:
    line = lines[leaves]
    while True:
        yield heappop(line)
        if not line or not enough(leaves):
            break
    if not line:
        del lines[leaves]
