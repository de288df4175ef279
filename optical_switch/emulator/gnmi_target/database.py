"""CONFIG_DB and STATE_DB: rows of a Redis database, which are read and written in transactions and can be followed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from redis.asyncio import Redis
from redis.asyncio.client import PubSub

from optical_switch.emulator.gnmi_target.edits import RowEdit
from optical_switch.emulator.gnmi_target.tables import (
    NUMBERS,
    SEPARATOR,
    Fields,
    RowId,
    TableSchema,
    known_fields,
    parse_row_id,
)

NO_FIELDS = {"NULL": "NULL"}
"""The field that SONiC gives a row without fields: Redis keeps no empty hash."""
MAX_BATCH = 4096
"""Rows of one batch of notifications: a writer that never pauses must not keep the reader from its work."""
_READ_TABLES = """
local rows = {}
for _, pattern in ipairs(ARGV) do
    for _, key in ipairs(redis.call('KEYS', pattern)) do
        if redis.call('TYPE', key).ok == 'hash' then
            rows[#rows + 1] = {key, redis.call('HGETALL', key)}
        end
    end
end
return rows
"""
"""Reads tables in one step: with single commands a transaction of another client could fall between two rows."""


class RowDatabase:
    """One database of the switch.

    Parameters
    ----------
    name : str
        CONFIG_DB or STATE_DB.
    socket : Path
        Unix socket of Redis.
    """

    def __init__(self, name: str, socket: Path) -> None:
        self.name = name
        # An operator may have written anything, which must not end the reader.
        self._redis = Redis(
            unix_socket_path=str(socket),
            db=NUMBERS[name],
            protocol=2,
            socket_timeout=None,
            decode_responses=True,
            encoding_errors="replace",
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._redis.aclose()

    async def read(self, tables: Iterable[TableSchema]) -> dict[RowId, Fields]:
        """Return all rows of tables as they are at one time; keys and fields that the model lacks are left out."""
        patterns = [f"{table.name}{SEPARATOR}*" for table in tables if table.database == self.name]
        found = await self._redis.execute_command("EVAL", _READ_TABLES, "0", *patterns)
        rows = ((parse_row_id(key), _pairs(flat)) for key, flat in found)
        return {row: known_fields(row, pairs) for row, pairs in rows if row is not None}

    async def read_rows(self, rows: Sequence[RowId]) -> dict[RowId, Fields]:
        """Return those of these rows that exist, as they are at one time."""
        async with self._redis.pipeline(transaction=True) as pipe:
            for row in rows:
                pipe.execute_command("HGETALL", str(row))
            found: list[dict[str, str]] = await pipe.execute(raise_on_error=False)
        return {
            row: known_fields(row, fields.items())
            for row, fields in zip(rows, found, strict=True)
            if isinstance(fields, dict) and fields
        }

    async def write(self, edits: Sequence[RowEdit]) -> None:
        """Make edits in one transaction."""
        if not edits:
            return
        async with self._redis.pipeline(transaction=True) as pipe:
            for edit in edits:
                for command in _commands(edit):
                    pipe.execute_command(*command)
            await pipe.execute()

    async def clear(self) -> None:
        """Delete all rows, one by one: Redis notifies its subscribers of no FLUSHDB."""
        keys = await self._redis.execute_command("KEYS", "*")
        if keys:
            await self._redis.execute_command("DEL", *keys)

    async def save(self) -> None:
        """Write all databases to the file from which the next Redis in the folder starts."""
        await self._redis.execute_command("SAVE")

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[RowWatch]:
        """Follow the rows until the block ends; every change after the beginning of the block is seen."""
        pubsub = self._redis.pubsub()
        try:
            prefix = f"__keyspace@{NUMBERS[self.name]}__:"
            await pubsub.psubscribe(f"{prefix}*")
            # Redis confirms the subscription: a change before the confirmation would be missed.
            await pubsub.get_message(timeout=None)
            yield RowWatch(pubsub, prefix)
        finally:
            await pubsub.aclose()


class RowWatch:
    """Notifications of the changes of rows."""

    def __init__(self, pubsub: PubSub, prefix: str) -> None:
        self._pubsub = pubsub
        self._prefix = prefix

    async def changed(self) -> set[RowId]:
        """Wait for changes, and return the rows that have been set or deleted since the last call."""
        rows: set[RowId] = set()
        while not rows:
            message = await self._pubsub.get_message(timeout=None)
            while message is not None:
                row = parse_row_id(str(message["channel"]).removeprefix(self._prefix))
                if row is not None:
                    rows.add(row)
                message = await self._pubsub.get_message(timeout=0) if len(rows) < MAX_BATCH else None
        return rows


def _commands(edit: RowEdit) -> Iterator[tuple[str, ...]]:
    key = str(edit.row)
    if edit.is_delete:
        yield "DEL", key
        return
    if edit.removed:
        yield "HDEL", key, *sorted(edit.removed)
    yield "HSET", key, *(text for pair in (edit.fields or NO_FIELDS).items() for text in pair)


def _pairs(flat: Sequence[str]) -> list[tuple[str, str]]:
    return list(zip(flat[::2], flat[1::2], strict=True))
