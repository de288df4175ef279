"""A session to a SONiC switch by its databases: keyspace notifications show the state, a transaction is a change.

Redis keeps no notifications for a client and sends none for FLUSHDB, so the tables are also read at regular intervals.
If the switch does not send all notifications, the intervals are short: the driver changes no setting of a device.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from optical_switch.errors import ProtocolError, RefusedError
from optical_switch.model import Circuit
from optical_switch.session import BatchResult
from optical_switch.sonic_ocs.model import CONFIG_TABLES, CROSS_CONNECT_TABLE, FACTORY_TABLE, PORT_TABLE
from optical_switch.sonic_ocs.redis_commands import (
    CONFIG_NUMBER,
    MAX_FACTORY_KEYS,
    MAX_KEYS,
    SCAN_COUNT,
    STATE_NUMBER,
    change_commands,
    changed_key,
    missing_events,
    row_changes,
    row_commands,
    scan,
    scanned,
    subscriptions,
)
from optical_switch.sonic_ocs.redis_connection import DatabaseConnection, error_of, refused_if_error
from optical_switch.sonic_ocs.refusals import refused_batch
from optical_switch.sonic_ocs.session import CHECK_SECONDS, OcsSession
from optical_switch.sonic_ocs.settings import RedisSettings
from optical_switch.sonic_ocs.state import RowsDeleted, TableChange

log = logging.getLogger(__name__)

POLL_SECONDS = 0.5
"""Time between two readings of all rows without notifications: a change waits for one, and 640 rows take some 50 ms."""

_EVENTS_KEY = "notify-keyspace-events"


class RedisSession(OcsSession):
    """A session by the databases.

    Parameters
    ----------
    settings : RedisSettings
        How the switch is reached.
    check_seconds : float
        Time between two readings of all rows.
    """

    def __init__(self, settings: RedisSettings, check_seconds: float = CHECK_SECONDS) -> None:
        super().__init__(settings.target.name, check_seconds)
        self._events = DatabaseConnection(settings, STATE_NUMBER)
        self._state = DatabaseConnection(settings, STATE_NUMBER)
        self._config = DatabaseConnection(settings, CONFIG_NUMBER)
        self._changed: set[str] = set()
        """Keys of rows that are to be read."""
        self._wake = asyncio.Event()
        self._reading = asyncio.Lock()
        """Held while rows are read: an older content must not replace a newer one."""

    async def _connect(self) -> None:
        for connection in (self._events, self._state, self._config):
            await connection.connect()
        await self._check_notifications()
        for reply in await self._events.exchange(subscriptions()):
            refused_if_error(reply)
        await self._read_all(silent=True)
        self._start(self._note_changes)
        self._start(self._read_changes)

    async def _disconnect(self) -> None:
        for connection in (self._events, self._state, self._config):
            await connection.close()

    async def _check_notifications(self) -> None:
        """Read all rows at short intervals unless the switch is known to report all changes."""
        reason = await self._no_notifications()
        if reason:
            self._check_seconds = min(self._check_seconds, POLL_SECONDS)
            text = "optical switch %s: %s: its state is read every %g s; set %s to AKE on the switch, and allow %s"
            log.warning(text, self._name, reason, self._check_seconds, _EVENTS_KEY, "the user CONFIG GET")

    async def _no_notifications(self) -> str:
        """Return the reason why the switch may not report all changes; empty if it does."""
        try:
            answer = await self._state.request("CONFIG", "GET", _EVENTS_KEY)
        except RefusedError as error:
            return f"the user may not read {_EVENTS_KEY} ({error.text})"
        match answer:
            case [_, str(flags)]:
                missing = missing_events(flags)
                return f"{_EVENTS_KEY} lacks {missing}" if missing else ""
        raise ProtocolError(f"the switch does not report its setting {_EVENTS_KEY}")

    async def _change(self, deletes: Sequence[Circuit], adds: Sequence[Circuit]) -> BatchResult:
        try:
            replies = await self._config.transaction(change_commands(deletes, adds))
        except RefusedError as error:
            return refused_batch(error.code, error.text, deletes, adds)
        # Redis carries out the rest of a transaction if a command fails, as for a key that is no hash.
        errors = {
            circuit: error_of(reply)
            for circuit, reply in zip((*deletes, *adds), replies, strict=True)
            if isinstance(reply, Exception)
        }
        return BatchResult({circuit: error for circuit, error in errors.items() if isinstance(error, RefusedError)})

    async def _check(self) -> None:
        await self._config.request("PING")
        await self._read_all()

    # -------------------------------------------------------------------------------------------------- the state

    async def _note_changes(self) -> None:
        """Note the rows that the switch reports as changed, until the connection ends."""
        while True:
            key = changed_key(await self._events.message())
            if key is not None:
                self._changed.add(key)
                if len(self._changed) > MAX_KEYS:
                    raise ProtocolError(f"the switch reports changes of more than {MAX_KEYS} rows at a time")
                self._wake.set()

    async def _read_changes(self) -> None:
        """Read changed rows, all that were noted during the last reading together."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            keys, self._changed = sorted(self._changed), set()
            async with self._reading:
                self._take(await self._read(self._state, keys))

    async def _read_all(self, *, silent: bool = False) -> None:
        async with self._reading:
            rows = [row for table in (PORT_TABLE, CROSS_CONNECT_TABLE) for row in await self._rows(table)]
            self._take([RowsDeleted(), *rows], silent=silent)

    async def _rows(self, table: str) -> list[TableChange]:
        connection = self._config if table in CONFIG_TABLES else self._state
        limit = MAX_FACTORY_KEYS if table == FACTORY_TABLE else MAX_KEYS
        keys, cursor = set[str](), ""
        while cursor != "0":
            cursor, more = scanned(await connection.request(*scan(table, cursor or "0")))
            keys.update(more)
            if len(keys) > limit:
                raise ProtocolError(f"the switch has more than {limit} rows in {table}")
        return await self._read(connection, sorted(keys))

    async def _read(self, connection: DatabaseConnection, keys: Sequence[str]) -> list[TableChange]:
        changes: list[TableChange] = []
        for at in range(0, len(keys), SCAN_COUNT):
            part = keys[at : at + SCAN_COUNT]
            replies = [refused_if_error(reply) for reply in await connection.exchange(row_commands(part))]
            changes += row_changes(part, replies)
        return changes
