"""Which reservation holds which element, as it is written: no commit may leave one to two, nor take it too early."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from blast_controller.store.errors import DoubleHeldError
from blast_controller.store.interface import RESERVATION
from blast_controller.store.rows import Row

Changes = Mapping[str, str | None]
"""Elements with their new holders; None: free."""


class Holdings:
    """Holders of elements, starting from `holders` (reservation by element)."""

    def __init__(self, holders: Mapping[str, str] | None = None) -> None:
        self._holder: dict[str, str] = {}
        self._held: defaultdict[str, set[str]] = defaultdict(set)
        self.apply(holders or {})

    def __contains__(self, element: str) -> bool:
        return element in self._holder

    def changes(self, rows: Sequence[Row]) -> Changes:
        """Return the changes of holders by these rows in order. Raises DoubleHeldError; nothing has changed yet."""
        held: dict[str, frozenset[str]] = {}
        holder: dict[str, str | None] = {}
        for row in rows:
            if row.kind != RESERVATION:
                continue
            before = held.get(row.key, frozenset(self._held.get(row.key, ())))
            holder.update(dict.fromkeys(before - row.elements))
            for element in sorted(row.elements - before):
                other = holder[element] if element in holder else self._holder.get(element)
                if other is not None:
                    raise DoubleHeldError(element, other, row.key)
                holder[element] = row.key
            held[row.key] = row.elements
        return holder

    def apply(self, changes: Changes) -> None:
        """Apply written changes."""
        for element, reservation in changes.items():
            before = self._holder.pop(element, None)
            if before is not None:
                self._held[before].discard(element)
                if not self._held[before]:
                    del self._held[before]
            if reservation is not None:
                self._holder[element] = reservation
                self._held[reservation].add(element)
