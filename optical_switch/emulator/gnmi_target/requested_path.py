"""A path of a request with its answers: values for `Get`, and single leaves for subscriptions. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, replace

from blast_base.json_types import JsonValue
from optical_switch.emulator.gnmi_target.paths import Depth, PathSelection, node_path, select
from optical_switch.emulator.gnmi_target.refusals import not_found, unsupported
from optical_switch.emulator.gnmi_target.rendering import Renderer
from optical_switch.emulator.gnmi_target.tables import Fields, RowId, Rows
from optical_switch.sonic_ocs.proto import gnmi_pb2 as gnmi

ENCODINGS = (gnmi.JSON, gnmi.JSON_IETF)


@dataclass(frozen=True, slots=True)
class RequestedPath:
    """A path of a request.

    Parameters
    ----------
    selection : PathSelection
        Rows and fields that it selects.
    path : gnmi.Path
        The path, with the elements of the prefix.
    renderer : Renderer
        How values are written.
    """

    selection: PathSelection
    path: gnmi.Path
    renderer: Renderer

    def updates(self, rows: Rows) -> list[gnmi.Update]:
        """Return the answer to `Get`: each selected node as one value.

        Raises
        ------
        RpcRefusalError
            NOT_FOUND if the path has no wildcard and its node does not exist (gNMI 3.3.4).
        """
        if self.selection.is_wildcard:
            return list(self._nodes(rows))
        value = self.renderer.node(self.selection, rows)
        if value is None:
            raise not_found(f"{self.selection.text}: does not exist")
        return [gnmi.Update(path=self.path, val=self.renderer.typed(value))]

    def limited_to(self, databases: Container[str]) -> RequestedPath:
        """Return the path without the nodes of other databases."""
        patterns = tuple(pattern for pattern in self.selection.patterns if pattern.table.database in databases)
        return replace(self, selection=replace(self.selection, patterns=patterns))

    def selects(self, row: RowId) -> bool:
        """Return true if the row is selected, or leaves of it are."""
        return any(pattern.matches(row) for pattern in self.selection.patterns)

    def leaves(self, row: RowId, fields: Fields | None) -> dict[str, JsonValue]:
        """Return the selected leaves of a row with their values; none if the row does not exist."""
        if fields is None:
            return {}
        patterns = (pattern for pattern in self.selection.patterns if pattern.matches(row))
        names = (name for pattern in patterns for name in pattern.leaves(row, fields, self.selection.notation))
        return {name: self.renderer.leaf(row, fields, name) for name in names}

    def node_path(self, row: RowId, leaf: str = "") -> gnmi.Path:
        """Return the path of a row or of a leaf, with the origin where the client has set it."""
        path = node_path(self.selection.notation, row, leaf)
        path.origin = self.path.origin
        return path

    def _nodes(self, rows: Rows) -> Iterator[gnmi.Update]:
        """Yield the nodes that a wildcard stands for; of a table its rows."""
        for row in sorted(row for row in rows if self.selects(row)):
            if self.selection.depth is Depth.LEAF:
                for name, value in self.leaves(row, rows[row]).items():
                    yield gnmi.Update(path=self.node_path(row, name), val=self.renderer.typed(value))
            else:
                value = self.renderer.entry(row, rows[row])
                yield gnmi.Update(path=self.node_path(row), val=self.renderer.typed(value))


def requested_path(prefix: gnmi.Path, path: gnmi.Path, encoding: gnmi.Encoding) -> RequestedPath:
    """Return a path of a request.

    Raises
    ------
    RpcRefusalError
        If the path cannot be read, or the encoding is not supported.
    """
    if encoding not in ENCODINGS:
        # gNMI 3.3.1: the message must name the encoding.
        name = gnmi.Encoding.Name(encoding) if encoding in gnmi.Encoding.values() else encoding
        raise unsupported(f"the encoding {name} is not supported: use JSON_IETF or JSON")
    selection = select(prefix, path)
    absolute = gnmi.Path(origin=path.origin, elem=[*prefix.elem, *path.elem])
    return RequestedPath(selection, absolute, Renderer(selection.notation, encoding == gnmi.JSON_IETF))


def response_prefix(prefix: gnmi.Path) -> gnmi.Path:
    """Return the prefix of a response: with the target and origin of the request (gNMI 2.2.2.1, 2.7)."""
    return gnmi.Path(target=prefix.target, origin=prefix.origin)
