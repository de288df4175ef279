"""The requests to a SONiC switch by gNMI 0.10, and the changes of its notifications. Pure.

The model can be addressed in two ways (`Origin`). "databases": the target in the path's prefix is a Redis database, and
the elements are a table, a key and a column. "yang": the origin is the YANG module, and the elements are its containers
and lists. Notifications are read in either form, because elements and JSON members differ in containers and list keys
only, which carry no information of their own here.

A server that announces the model `sonic-db` has the mixed schema of SONiC's design of the gNMI server: it takes changes
of databases only with the origin `sonic-db`, where a path begins with the database and the instance. "databases" then
addresses CONFIG_DB so. STATE_DB keeps the target, because subscriptions with `sonic-db` report no deleted rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from optical_switch.errors import ProtocolError
from optical_switch.model import Circuit
from optical_switch.printable import printable
from optical_switch.sonic_ocs.model import (
    CONFIG_DB,
    CONFIG_TABLES,
    CROSS_CONNECT_CONFIG,
    CROSS_CONNECT_TABLE,
    KEY_LEAVES,
    PORT_TABLE,
    READ_COLUMNS,
    STATE_DB,
    Origin,
    cross_connect_id,
    sides_of,
)
from optical_switch.sonic_ocs.proto import gnmi_pb2 as api
from optical_switch.sonic_ocs.state import RowsDeleted, RowUpdated, TableChange

MODULE = "sonic-ocs"
"""The YANG module, its origin in gNMI, and its top container."""
MIXED_SCHEMA = "sonic-db"
"""The model of a server with the mixed schema, and its origin in gNMI."""
INSTANCE = "localhost"
"""The instance of a database on a switch with one ASIC, as an optical switch is."""

_LIST = "_LIST"
_ROW_DEPTH = 2
"""A table and a key."""


class OcsRequests:
    """The requests of a driver.

    Parameters
    ----------
    origin : Literal["databases", "yang"]
        How the device addresses the model.
    mixed_schema : bool
        True if "databases" addresses CONFIG_DB by the mixed schema.
    """

    def __init__(self, origin: Origin, *, mixed_schema: bool = False) -> None:
        self._yang = origin == "yang"
        self._mixed_schema = mixed_schema and not self._yang

    def subscribe(self) -> api.SubscribeRequest:
        """Return the subscription to both tables of the state, on every change."""
        return api.SubscribeRequest(
            subscribe=api.SubscriptionList(
                prefix=self._prefix(PORT_TABLE),
                subscription=[
                    api.Subscription(path=self._path(table), mode=api.ON_CHANGE)
                    for table in (PORT_TABLE, CROSS_CONNECT_TABLE)
                ],
                mode=api.SubscriptionList.STREAM,
                encoding=api.JSON_IETF,
            )
        )

    def rows(self, table: str) -> api.GetRequest:
        """Return the request for the rows of a table; for data of any type, because SONiC's server takes no other."""
        return api.GetRequest(prefix=self._prefix(table), path=[self._path(table)], encoding=api.JSON_IETF)

    def change(self, deletes: Sequence[Circuit], adds: Sequence[Circuit]) -> api.SetRequest:
        """Return the transaction that removes circuits, then sets others.

        The model has an RPC for that, `bulk-update`, but gNMI 0.10 has no call for RPCs of a YANG module. A `Set` does
        the same: it is one transaction (section 3.4) in which deletes are applied before updates (3.4.6).
        """
        return api.SetRequest(
            prefix=self._prefix(CROSS_CONNECT_CONFIG),
            delete=[self._row(circuit) for circuit in deletes],
            update=[api.Update(path=self._row(circuit), val=self._value(circuit)) for circuit in adds],
        )

    def _prefix(self, table: str) -> api.Path | None:
        if self._yang:
            return api.Path(origin=MODULE)
        if self._has_mixed_path(table):
            # A target would select the older schema.
            return None
        return api.Path(target=CONFIG_DB if table in CONFIG_TABLES else STATE_DB)

    def _path(self, table: str) -> api.Path:
        if self._has_mixed_path(table):
            return _path_of([CONFIG_DB, INSTANCE, table], MIXED_SCHEMA)
        return _path_of([MODULE, table] if self._yang else [table])

    def _has_mixed_path(self, table: str) -> bool:
        return self._mixed_schema and table in CONFIG_TABLES

    def _row(self, circuit: Circuit) -> api.Path:
        path, identifier = self._path(CROSS_CONNECT_CONFIG), cross_connect_id(circuit)
        if self._yang:
            path.elem.add(name=f"{CROSS_CONNECT_CONFIG}{_LIST}", key={KEY_LEAVES[CROSS_CONNECT_CONFIG]: identifier})
        else:
            path.elem.add(name=identifier)
        return path

    def _value(self, circuit: Circuit) -> api.TypedValue:
        a_side, b_side = sides_of(circuit)
        leaves = {"a_side": a_side, "b_side": b_side}
        if self._yang:
            # RFC 7951, section 4: members of the top-level object are qualified by the module.
            leaves |= {KEY_LEAVES[CROSS_CONNECT_CONFIG]: cross_connect_id(circuit)}
            leaves = {f"{MODULE}:{name}": value for name, value in leaves.items()}
        return api.TypedValue(json_ietf_val=json.dumps(leaves).encode())


def requests_for(origin: Origin, response: api.CapabilityResponse) -> OcsRequests:
    """Return the requests that a device understands.

    Parameters
    ----------
    origin : Literal["databases", "yang"]
        How to address the model.
    response : CapabilityResponse
        The capabilities that the device announces.

    Returns
    -------
    OcsRequests
        The requests.

    Raises
    ------
    ProtocolError
        If the device has another model, or encodes values otherwise.
    """
    models = {model.name for model in response.supported_models}
    # A server without translation of YANG announces only the schema of its databases.
    if models.isdisjoint([MODULE] if origin == "yang" else [MODULE, MIXED_SCHEMA]):
        raise ProtocolError(
            f"the switch does not support the model {MODULE} (gNMI {printable(response.gNMI_version)}): "
            "check that it runs SONiC for optical circuit switches"
        )
    if api.JSON_IETF not in response.supported_encodings:
        raise ProtocolError("the switch does not support the encoding JSON_IETF of gNMI, which the driver needs")
    return OcsRequests(origin, mixed_schema=MIXED_SCHEMA in models)


def changes_in(notification: api.Notification) -> list[TableChange]:
    """Return the changes of a notification, deletes first.

    Parameters
    ----------
    notification : Notification
        A message of a subscription, or of the answer to a `Get`.

    Returns
    -------
    list[TableChange]
        The changes. Columns that the driver does not read, and their tables, are left out.

    Raises
    ------
    ProtocolError
        If a path or value cannot be read.
    """
    prefix = notification.prefix
    # gNMI 0.10, section 2.1.1: an atomic notification has the entire content below its prefix.
    changes: list[TableChange] = [RowsDeleted(_segments(prefix, api.Path()))] if notification.atomic else []
    changes += [RowsDeleted(_segments(prefix, path)) for path in notification.delete]
    for update in notification.update:
        changes += _updates(_segments(prefix, update.path), _decoded(update.val))
    return changes


def rows_in(response: api.GetResponse) -> Iterator[TableChange]:
    """Yield the rows of the answer to a `Get`. Raises ProtocolError if it cannot be read."""
    for notification in response.notification:
        yield from changes_in(notification)


def _path_of(names: Iterable[str], origin: str = "") -> api.Path:
    return api.Path(origin=origin, elem=[api.PathElem(name=name) for name in names])


def _segments(prefix: api.Path, path: api.Path) -> tuple[str, ...]:
    """Return table, key and column of a path, as far as it goes."""
    elements = [*prefix.elem, *path.elem]
    if MIXED_SCHEMA in {prefix.origin, path.origin}:
        # The database and the instance.
        elements = elements[2:]
    found: list[str] = []
    for element in elements:
        name = _bare(element.name)
        if not name.endswith(_LIST) and name != MODULE:
            found.append(name)
        if element.key:
            # Of a list with several keys as in the databases, where they are in the order of their names.
            found.append("|".join(value for _, value in sorted(element.key.items())))
    if any("*" in segment or segment == "..." for segment in found):
        raise ProtocolError(f"the switch reports a path with a wildcard: {printable('/'.join(found))}")
    return tuple(found)


def _bare(name: str) -> str:
    """Return a name without its YANG module."""
    return name.rpartition(":")[2]


def _decoded(value: api.TypedValue) -> object:
    """Return a value as JSON has it."""
    kind = value.WhichOneof("value")
    match kind:
        case "json_ietf_val" | "json_val":
            try:
                return json.loads(getattr(value, kind))
            except (ValueError, RecursionError):
                text = printable(getattr(value, kind).decode(errors="replace"))
                raise ProtocolError(f"the switch reports a value that is not JSON: {text}") from None
        case "string_val" | "ascii_val" | "int_val" | "uint_val" | "double_val" | "float_val" | "bool_val":
            return getattr(value, kind)
        case "decimal_val":
            return value.decimal_val.digits / 10 ** min(value.decimal_val.precision, 18)
        case "leaflist_val":
            return [_decoded(element) for element in value.leaflist_val.element]
    raise ProtocolError(f"the switch reports a value of the type {kind}: expected JSON_IETF")


def _updates(path: tuple[str, ...], value: object) -> Iterator[RowUpdated]:
    """Yield the rows of a value."""
    if path and path[0] not in READ_COLUMNS:
        return
    if len(path) > _ROW_DEPTH:
        table, key, column = path[:3]
        if column in READ_COLUMNS[table]:
            yield RowUpdated(table, key, {column: _text(path, value)})
        return
    members = _members(path, value)
    if len(path) == _ROW_DEPTH:
        table, key = path
        columns = {name: member for name, member in members.items() if name in READ_COLUMNS[table]}
        yield RowUpdated(table, key, {name: _text((*path, name), member) for name, member in columns.items()})
        return
    for name, member in members.items():
        if name == MODULE:
            yield from _updates(path, member)
        elif path and name.endswith(_LIST) and isinstance(member, list):
            yield from _list_rows(path[0], member)
        else:
            yield from _updates((*path, name), member)


def _list_rows(table: str, rows: Iterable[object]) -> Iterator[RowUpdated]:
    for row in rows:
        members = _members((table,), row)
        key = members.get(KEY_LEAVES[table])
        if not isinstance(key, str):
            raise ProtocolError(f"the switch reports a row of {table} without {KEY_LEAVES[table]}")
        yield from _updates((table, key), row)


def _members(path: tuple[str, ...], value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ProtocolError(f"the switch reports no JSON object at {_shown(path)}: {printable(repr(value))}")
    return {_bare(name): member for name, member in value.items()}


def _text(path: tuple[str, ...], value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise ProtocolError(f"the switch reports no text or number at {_shown(path)}: {printable(repr(value))}")


def _shown(path: tuple[str, ...]) -> str:
    return printable("/".join(path)) or "/"
