"""The model `sonic-ocs` as data: its tables, their keys and leaves, and the rows of the databases that have them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

MODEL = "sonic-ocs"
ORGANIZATION = "SONiC"
REVISION = "2024-11-21"

MIXED_SCHEMA = "sonic-db"
"""Model and origin of the mixed schema of SONiC's gNMI server."""
MIXED_SCHEMA_VERSION = "0.1.0"
INSTANCE = "localhost"
"""The instance of the databases of a switch with one ASIC."""

CONFIG_DB = "CONFIG_DB"
STATE_DB = "STATE_DB"
NUMBERS = {CONFIG_DB: 4, STATE_DB: 6}
"""Numbers of the databases in Redis by the convention of SONiC."""
SEPARATOR = "|"
"""Between table and key, and between the parts of a key, in the Redis keys of both databases."""


@dataclass(frozen=True, slots=True)
class LeafSchema:
    """A leaf of a table.

    Parameters
    ----------
    name : str
        Name in the model.
    choices : frozenset[str]
        Values of an enumeration. Empty: any text.
    is_list : bool
        True for a leaf-list.
    """

    name: str
    choices: frozenset[str] = frozenset()
    is_list: bool = False

    @property
    def field(self) -> str:
        """Name in Redis: SONiC marks a list by `@` and joins its values by commas."""
        return f"{self.name}@" if self.is_list else self.name


@dataclass(frozen=True, slots=True)
class TableSchema:
    """A table of a database, which is a container with one list in the model.

    Parameters
    ----------
    name : str
        Name of the table and the container.
    database : str
        Database: configuration is in CONFIG_DB, state (`config false`) in STATE_DB.
    list_name : str
        Name of the list in the container.
    keys : tuple[str, ...]
        Key leaves of the list. They are no fields in Redis, only parts of the key.
    leaves : tuple[LeafSchema, ...]
        All other leaves.
    """

    name: str
    database: str
    list_name: str
    keys: tuple[str, ...]
    leaves: tuple[LeafSchema, ...]

    def leaf(self, name: str) -> LeafSchema | None:
        """Return the leaf of that name in the model, or None."""
        return next((leaf for leaf in self.leaves if leaf.name == name), None)

    def leaf_of_field(self, field: str) -> LeafSchema | None:
        """Return the leaf of that field in Redis, or None."""
        return next((leaf for leaf in self.leaves if leaf.field == field), None)


OVERRIDES = frozenset({"powered_off", "normal", "force_blocked"})

PORTS = TableSchema(
    "OCS_PORT",
    CONFIG_DB,
    "OCS_PORT_LIST",
    ("simplex_port_id",),
    (LeafSchema("label"), LeafSchema("config_status", OVERRIDES)),
)
CROSS_CONNECTS = TableSchema(
    "OCS_CROSS_CONNECT",
    CONFIG_DB,
    "OCS_CROSS_CONNECT_LIST",
    ("cross_connect_id",),
    (LeafSchema("a_side"), LeafSchema("b_side")),
)
PORT_STATES = TableSchema(
    "OCS_PORT_TABLE",
    STATE_DB,
    "OCS_PORT_LIST",
    ("simplex_port_id",),
    tuple(map(LeafSchema, ("connector_type", "connector_pin", "target_simplex_port_id", "oper_status"))),
)
CROSS_CONNECT_STATES = TableSchema(
    "OCS_CROSS_CONNECT_TABLE",
    STATE_DB,
    "OCS_CROSS_CONNECT_LIST",
    ("cross_connect_id",),
    (LeafSchema("status"), LeafSchema("physical_path", is_list=True), LeafSchema("insertion_loss_dB")),
)
FACTORY_LOSSES = TableSchema(
    "OCS_FACTORY_INSERTION_LOSS_TABLE",
    STATE_DB,
    "OCS_FACTORY_INSERTION_LOSS_LIST",
    ("cross_connect_id", "frequency_THz", "temperature_C"),
    (LeafSchema("loss_dB"), LeafSchema("accuracy_dB")),
)
TABLES = {table.name: table for table in (PORTS, CROSS_CONNECTS, PORT_STATES, CROSS_CONNECT_STATES, FACTORY_LOSSES)}


class RowId(NamedTuple):
    """A row: the name of its table, and the parts of its key."""

    table: str
    key: tuple[str, ...]

    def __str__(self) -> str:
        return SEPARATOR.join((self.table, *self.key))


Fields = Mapping[str, str]
"""The fields of a row as Redis has them."""
Rows = Mapping[RowId, Fields]
"""Rows of one database or of both."""


class RowChange(NamedTuple):
    """A change of a row; None where it does not exist."""

    row: RowId
    before: Fields | None
    after: Fields | None


def parse_row_id(text: str) -> RowId | None:
    """Return the row of a Redis key, or None if the model has no such table or key."""
    name, *key = text.split(SEPARATOR)
    table = TABLES.get(name)
    if table is None or len(key) != len(table.keys):
        return None
    return RowId(name, tuple(key))


def known_fields(row: RowId, fields: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the fields that the model has: SONiC stores a row without fields as `NULL`."""
    table = TABLES[row.table]
    return {field: value for field, value in fields if table.leaf_of_field(field) is not None}


def tables_of(database: str) -> tuple[TableSchema, ...]:
    """Return the tables of a database."""
    return tuple(table for table in TABLES.values() if table.database == database)
