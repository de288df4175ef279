"""The commands to the databases of a SONiC switch, and the rows in their replies. Pure.

A row is a hash with the key `TABLE|key`. CONFIG_DB and STATE_DB are the databases 4 and 6 by SONiC's convention.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from optical_switch.errors import ProtocolError
from optical_switch.model import Circuit
from optical_switch.printable import printable
from optical_switch.sonic_ocs.model import (
    CROSS_CONNECT_CONFIG,
    CROSS_CONNECT_TABLE,
    MAX_PORT,
    PORT_TABLE,
    READ_COLUMNS,
    cross_connect_id,
    sides_of,
)
from optical_switch.sonic_ocs.state import RowsDeleted, RowUpdated, TableChange

CONFIG_NUMBER = 4
"""Number of CONFIG_DB by SONiC's convention."""
STATE_NUMBER = 6
"""Number of STATE_DB by SONiC's convention."""
MAX_KEYS = 4 * MAX_PORT
"""Keys of a table in one reading: more are refused when they are read, see `DeviceTables`."""
MAX_FACTORY_KEYS = 1 << 16
"""Keys of the table of the factory in one reading: each circuit of a switch with 256 by 256 ports, as by gNMI."""
SCAN_COUNT = 1000
"""Keys that a step of SCAN visits: the database of another table's rows must not take hundreds of steps."""

_EVENTS = frozenset("Kghxe")
"""Events by key (K), of generic commands such as DEL (g), of hashes (h), and of expired (x) and evicted (e) keys."""
_ALL_EVENTS = "A"
_ALIASED = frozenset("g$lshztxed")
_PREFIX = f"__keyspace@{STATE_NUMBER}__:"

Command = tuple[str, ...]
Reply = str | int | None | Exception | list["Reply"]
"""A reply of Redis, with texts decoded and errors as exceptions."""


def missing_events(flags: str) -> str:
    """Return the flags that `notify-keyspace-events` lacks.

    >>> missing_events("AKE"), sorted(missing_events("Ex"))
    ('', ['K', 'e', 'g', 'h'])
    """
    found = set(flags) | (_ALIASED if _ALL_EVENTS in flags else frozenset())
    return "".join(sorted(_EVENTS - found))


def subscriptions() -> list[Command]:
    """Return the commands that subscribe to the changes of both tables."""
    return [("PSUBSCRIBE", f"{_PREFIX}{table}|*") for table in (PORT_TABLE, CROSS_CONNECT_TABLE)]


def changed_key(message: Reply) -> str | None:
    """Return the key that a message of a subscription names; None for a message of another kind."""
    match message:
        case ["pmessage", str(), str(channel), str()] if channel.startswith(_PREFIX):
            return channel.removeprefix(_PREFIX)
    return None


def scan(table: str, cursor: str) -> Command:
    """Return the command for the next keys of a table."""
    return ("SCAN", cursor, "MATCH", f"{table}|*", "COUNT", str(SCAN_COUNT))


def scanned(reply: Reply) -> tuple[str, list[str]]:
    """Return the cursor of the next step, "0" at the end, and keys. Raises ProtocolError."""
    match reply:
        case [str(cursor), list(keys)]:
            return cursor, [key for key in keys if isinstance(key, str)]
    raise ProtocolError(f"the switch answered SCAN with {_shown(reply)}")


def row_commands(keys: Iterable[str]) -> list[Command]:
    """Return the commands that read rows, two for each."""
    commands: list[Command] = []
    for key in keys:
        table, _ = _split(key)
        commands += [("EXISTS", key), ("HMGET", key, *READ_COLUMNS[table])]
    return commands


def row_changes(keys: Sequence[str], replies: Sequence[Reply]) -> Iterator[TableChange]:
    """Yield the present content of rows, from the replies to `row_commands`. Raises ProtocolError."""
    for key, exists, values in zip(keys, replies[::2], replies[1::2], strict=True):
        table, name = _split(key)
        columns = READ_COLUMNS[table]
        if not isinstance(values, list) or len(values) != len(columns):
            raise ProtocolError(f"the switch answered HMGET {printable(key)} with {_shown(values)}")
        yield RowsDeleted((table, name))
        if exists:
            found = zip(columns, values, strict=True)
            yield RowUpdated(table, name, {column: value for column, value in found if isinstance(value, str)})


def change_commands(deletes: Iterable[Circuit], adds: Iterable[Circuit]) -> list[Command]:
    """Return the commands of a transaction, one for each circuit."""
    commands: list[Command] = [("DEL", _config_key(circuit)) for circuit in deletes]
    for circuit in adds:
        a_side, b_side = sides_of(circuit)
        commands.append(("HSET", _config_key(circuit), "a_side", a_side, "b_side", b_side))
    return commands


def _config_key(circuit: Circuit) -> str:
    return f"{CROSS_CONNECT_CONFIG}|{cross_connect_id(circuit)}"


def _split(key: str) -> tuple[str, str]:
    table, _, name = key.partition("|")
    if table not in READ_COLUMNS:
        raise ProtocolError(f"the switch reports the key {printable(key)!r}, which was not requested")
    return table, name


def _shown(reply: Reply) -> str:
    return printable(repr(reply))
