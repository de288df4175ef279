"""A copy of a database that follows it, for subscriptions: they need the changes, and not only the result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence

from optical_switch.emulator.gnmi_target.database import RowDatabase
from optical_switch.emulator.gnmi_target.tables import Fields, RowChange, RowId, Rows, TableSchema, tables_of

RowListener = Callable[[Sequence[RowChange]], None]


class DatabaseMirror:
    """The rows of a database, as of the last notification.

    Parameters
    ----------
    database : RowDatabase
        The database.
    """

    def __init__(self, database: RowDatabase) -> None:
        self.rows: dict[RowId, Fields] = {}
        self.listeners: set[RowListener] = set()
        self.is_complete = asyncio.Event()
        self._database = database
        # A reading that is overtaken by another one would bring back old rows.
        self._reading = asyncio.Lock()

    async def run(self) -> None:
        """Follow the database until this is cancelled."""
        async with self._database.watch() as watch:
            await self.refresh(tables_of(self._database.name))
            self.is_complete.set()
            while True:
                rows = sorted(await watch.changed())
                async with self._reading:
                    self._update(rows, await self._database.read_rows(rows))

    async def refresh(self, tables: Collection[TableSchema]) -> None:
        """Read tables now: a notification of what a client has written before may still be on its way."""
        names = {table.name for table in tables}
        async with self._reading:
            found = await self._database.read(tables)
            self._update(sorted(found.keys() | {row for row in self.rows if row.table in names}), found)

    def _update(self, rows: Iterable[RowId], found: Rows) -> None:
        """Take over rows that have been read."""
        changes = [RowChange(row, self.rows.get(row), found.get(row)) for row in rows]
        changes = [change for change in changes if change.before != change.after]
        for change in changes:
            if change.after is None:
                del self.rows[change.row]
            else:
                self.rows[change.row] = change.after
        if changes:
            for listener in list(self.listeners):
                listener(changes)
