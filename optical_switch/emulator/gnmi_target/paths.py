"""The paths of gNMI: which nodes of the model a path selects, and the path of a node.

Three notations address the same data. With the target CONFIG_DB or STATE_DB in the prefix a path is that of SONiC's
databases, /TABLE/key/field. With the origin `sonic-db` the database and the instance come first,
/CONFIG_DB/localhost/TABLE/key/field, and a list has its name in the model. With the origin `sonic-ocs` a path is that
of the model, /sonic-ocs/TABLE/TABLE_LIST[key=...]/leaf.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, IntEnum, auto

from optical_switch.emulator.gnmi_target.refusals import UnknownNodeError, invalid, unsupported
from optical_switch.emulator.gnmi_target.tables import (
    INSTANCE,
    MIXED_SCHEMA,
    MODEL,
    NUMBERS,
    SEPARATOR,
    TABLES,
    Fields,
    RowId,
    Rows,
    TableSchema,
    tables_of,
)
from optical_switch.printable import printable
from optical_switch.sonic_ocs.proto import gnmi_pb2 as gnmi

ANY = "*"
"""One node or key of any value (gNMI path conventions)."""
ANY_DEPTH = "..."
"""Nodes of any depth (gNMI path conventions)."""


class Notation(Enum):
    """The ways to write paths and values."""

    DATABASE = auto()
    MIXED = auto()
    YANG = auto()


class Depth(IntEnum):
    """The node at which a path ends."""

    TOP = auto()
    """The root of all models: only with an origin."""
    ROOT = auto()
    """A database, or the container of the model."""
    TABLE = auto()
    ROW = auto()
    LEAF = auto()


@dataclass(frozen=True, slots=True)
class NodePattern:
    """Nodes of one table.

    Parameters
    ----------
    table : TableSchema
        The table.
    key : tuple[str | None, ...]
        Key; None for a part that may have any value.
    leaf : str | None
        Name of the leaf in the model. None: any, or all of the row.
    """

    table: TableSchema
    key: tuple[str | None, ...]
    leaf: str | None = None

    def matches(self, row: RowId) -> bool:
        """Return true if the row is among the nodes, or has leaves that are."""
        return row.table == self.table.name and all(
            own is None or own == part for own, part in zip(self.key, row.key, strict=True)
        )

    def leaves(self, row: RowId, fields: Fields, notation: Notation) -> Iterator[str]:
        """Yield the names of the leaves of a row that are selected and exist; key leaves exist in the model only."""
        names = [leaf.name for leaf in self.table.leaves if leaf.field in fields]
        if notation is Notation.YANG:
            names = [*self.table.keys, *names]
        yield from (name for name in names if self.leaf in {None, name})


@dataclass(frozen=True, slots=True)
class PathSelection:
    """The nodes that a path selects.

    Parameters
    ----------
    notation : Notation
        How the path is written.
    depth : Depth
        The node at which it ends.
    patterns : tuple[NodePattern, ...]
        The nodes, for each table. Empty: no table has such nodes.
    is_wildcard : bool
        True if the path may select several nodes.
    text : str
        The path, for messages.
    """

    notation: Notation
    depth: Depth
    patterns: tuple[NodePattern, ...]
    is_wildcard: bool
    text: str

    @property
    def tables(self) -> tuple[TableSchema, ...]:
        """The tables that the path selects or is in."""
        return tuple(pattern.table for pattern in self.patterns)

    def rows(self, rows: Rows) -> Iterator[tuple[RowId, NodePattern]]:
        """Yield the rows that are selected, or have leaves that are."""
        for row in rows:
            yield from ((row, pattern) for pattern in self.patterns if pattern.matches(row))


def select(prefix: gnmi.Path, path: gnmi.Path) -> PathSelection:
    """Return the rows and fields that a path selects.

    Parameters
    ----------
    prefix : gnmi.Path
        Prefix of the request.
    path : gnmi.Path
        A path of the request.

    Returns
    -------
    PathSelection
        The nodes.

    Raises
    ------
    RpcRefusalError
        INVALID_ARGUMENT if the path violates gNMI; UNIMPLEMENTED for another origin or `...`.
    UnknownNodeError
        If the model has no such node.
    """
    text = path_text(prefix, path)
    if path.target:
        raise invalid(f"{text}: a target is allowed in the prefix only (gNMI 2.2.2.1)")
    if path.origin and prefix.origin:
        raise invalid(f"{text}: set the origin in the prefix or in the path, not in both (gNMI 2.7)")
    elems = [*prefix.elem, *path.elem]
    if any(elem.name == ANY_DEPTH for elem in elems):
        raise unsupported(f"{text}: this target has no wildcard ...: use * for each node")
    origin = path.origin or prefix.origin
    if origin == MODEL:
        return _select_in_model(elems, text)
    if origin == MIXED_SCHEMA:
        return _select_in_mixed_schema(elems, text)
    if origin:
        raise unsupported(
            f"{text}: this target has no origin {printable(origin)}: use {MODEL}, {MIXED_SCHEMA} or a target without "
            "origin"
        )
    if prefix.target not in NUMBERS:
        known = " or ".join(NUMBERS)
        raise invalid(f"{text}: set the target of the prefix to {known}, or the origin to {MODEL}")
    return _select_in_database(prefix.target, elems, text, Notation.DATABASE)


def path_text(prefix: gnmi.Path, path: gnmi.Path) -> str:
    """Return a path for messages, of limited length."""
    elems = [*prefix.elem, *path.elem]
    parts = (elem.name + "".join(f"[{key}={value}]" for key, value in sorted(elem.key.items())) for elem in elems)
    return printable("/" + "/".join(parts))


def node_path(notation: Notation, row: RowId, leaf: str = "") -> gnmi.Path:
    """Return the path of a row, or of one of its leaves."""
    table = TABLES[row.table]
    if notation is Notation.YANG:
        entry = gnmi.PathElem(name=table.list_name, key=dict(zip(table.keys, row.key, strict=True)))
        elems = [gnmi.PathElem(name=MODEL), gnmi.PathElem(name=table.name), entry]
        field = leaf
    else:
        names = [table.database, INSTANCE] if notation is Notation.MIXED else []
        elems = [gnmi.PathElem(name=name) for name in (*names, table.name, SEPARATOR.join(row.key))]
        schema = table.leaf(leaf)
        field = "" if schema is None else schema.name if notation is Notation.MIXED else schema.field
    return gnmi.Path(elem=[*elems, gnmi.PathElem(name=field)] if field else elems)


# ------------------------------------------------------------------------------------------------ paths of databases


def _select_in_mixed_schema(elems: Sequence[gnmi.PathElem], text: str) -> PathSelection:
    database, instance = ([elem.name for elem in elems] + ["", ""])[:2]
    if database not in NUMBERS or instance != INSTANCE:
        known = " or ".join(NUMBERS)
        raise unsupported(f"{text}: begin with {known} and {INSTANCE} (origin {MIXED_SCHEMA})")
    return _select_in_database(database, elems[2:], text, Notation.MIXED)


def _select_in_database(database: str, elems: Sequence[gnmi.PathElem], text: str, notation: Notation) -> PathSelection:
    if any(elem.key for elem in elems):
        raise invalid(f"{text}: a path of {database} is /TABLE/key/field, without [key=value]")
    names = [elem.name for elem in elems]
    depths = (Depth.ROOT, Depth.TABLE, Depth.ROW, Depth.LEAF)
    if len(names) >= len(depths):
        raise invalid(f"{text}: a path of {database} has a table, a key and a field, and nothing below")
    tables = _named_tables(names[0] if names else ANY, tables_of(database), text)
    keys = names[1] if len(names) > 1 else ANY
    patterns = [pattern for table in tables if (pattern := _row_pattern(table, keys)) is not None]
    if len(names) == 3 and names[2] != ANY:
        leaves = {
            table.name: table.leaf(names[2]) if notation is Notation.MIXED else table.leaf_of_field(names[2])
            for table in tables
        }
        patterns = _with_leaf(patterns, {name: leaf.name for name, leaf in leaves.items() if leaf is not None}, text)
    return PathSelection(notation, depths[len(names)], tuple(patterns), _is_wildcard(names, patterns), text)


def _row_pattern(table: TableSchema, key: str) -> NodePattern | None:
    if key == ANY:
        return NodePattern(table, (None,) * len(table.keys))
    parts = tuple(None if part == ANY else part for part in key.split(SEPARATOR))
    return NodePattern(table, parts) if len(parts) == len(table.keys) else None


# ------------------------------------------------------------------------------------------------ paths of the model


def _select_in_model(elems: Sequence[gnmi.PathElem], text: str) -> PathSelection:
    everything = tuple(TABLES.values())
    if not elems:
        return PathSelection(Notation.YANG, Depth.TOP, _all_rows(everything), False, text)
    names = [elem.name.removeprefix(f"{MODEL}:") for elem in elems]
    if names[0] not in {MODEL, ANY}:
        raise UnknownNodeError(f"{text}: the model has no {printable(names[0])}: begin with /{MODEL}")
    if any(elem.key for elem in (*elems[:2], *elems[3:])):
        raise invalid(f"{text}: only the list in a table has keys")
    if len(names) == 1:
        return PathSelection(Notation.YANG, Depth.ROOT, _all_rows(everything), False, text)
    tables = _named_tables(names[1], everything, text)
    if len(names) == 2:
        return PathSelection(Notation.YANG, Depth.TABLE, _all_rows(tables), names[1] == ANY, text)
    tables = tuple(table for table in tables if names[2] in {table.list_name, ANY})
    if not tables:
        raise UnknownNodeError(f"{text}: the table has no list {printable(names[2])}")
    patterns = [_entry_pattern(table, dict(elems[2].key), text) for table in tables]
    if len(names) > 4:
        raise invalid(f"{text}: a leaf has nothing below")
    if len(names) == 4 and names[3] != ANY:
        having = [table for table in tables if names[3] in table.keys or table.leaf(names[3])]
        patterns = _with_leaf(patterns, {table.name: names[3] for table in having}, text)
    depth = Depth.ROW if len(names) == 3 else Depth.LEAF
    return PathSelection(Notation.YANG, depth, tuple(patterns), _is_wildcard(names, patterns), text)


def _entry_pattern(table: TableSchema, keys: dict[str, str], text: str) -> NodePattern:
    """Return the entries of a list; a key that is missing may have any value (gNMI path conventions)."""
    unknown = keys.keys() - set(table.keys)
    if unknown:
        raise invalid(f"{text}: the list {table.list_name} has no key {printable(min(unknown))}")
    values = (keys.get(name, ANY) for name in table.keys)
    return NodePattern(table, tuple(None if value == ANY else value for value in values))


# -------------------------------------------------------------------------------------------------------- both


def _named_tables(name: str, tables: Sequence[TableSchema], text: str) -> tuple[TableSchema, ...]:
    found = tuple(table for table in tables if name in {table.name, ANY})
    if not found:
        known = ", ".join(table.name for table in tables)
        raise UnknownNodeError(f"{text}: there is no table {printable(name)}: use one of {known}")
    return found


def _with_leaf(patterns: Sequence[NodePattern], leaves: Mapping[str, str], text: str) -> list[NodePattern]:
    """Return the patterns of tables that have the leaf, which `leaves` names for each of them."""
    if not leaves:
        raise UnknownNodeError(f"{text}: there is no such leaf")
    return [replace(pattern, leaf=leaves[pattern.table.name]) for pattern in patterns if pattern.table.name in leaves]


def _is_wildcard(names: Sequence[str], patterns: Sequence[NodePattern]) -> bool:
    return ANY in names or any(None in pattern.key for pattern in patterns if len(names) > 1)


def _all_rows(tables: Sequence[TableSchema]) -> tuple[NodePattern, ...]:
    return tuple(NodePattern(table, (None,) * len(table.keys)) for table in tables)
