"""The effect of `edit-config` on a tree of data (RFC 6241 section 7.2), decided as a whole.

An edit is made in a copy. An error leaves the data as they were, whatever the error option of the request.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from xml.etree import ElementTree as ET

from optical_switch.emulator.netconf_server.data.schema import (
    Model,
    ModelContainer,
    ModelLeaf,
    ModelList,
    ModelNode,
    Tree,
    add_fixed,
    copied,
    leaves_of,
    subtree,
)
from optical_switch.emulator.netconf_server.messages.names import BASE, PREFIXES, qualified, split_tag
from optical_switch.emulator.netconf_server.messages.rpc_errors import (
    ErrorTag,
    ServerRpcError,
    missing_element,
    unknown_element,
)
from optical_switch.emulator.netconf_server.messages.xml_text import text_of
from optical_switch.printable import printable

_OPERATION = qualified(BASE, "operation")


class EditOperation(StrEnum):
    """An operation on a node, and on the nodes in it that have no operation of their own."""

    MERGE = "merge"
    REPLACE = "replace"
    CREATE = "create"
    DELETE = "delete"
    REMOVE = "remove"
    NONE = "none"


_ENDING = (EditOperation.DELETE, EditOperation.REMOVE)


def edited(model: Model, before: Tree, config: ET.Element, default: EditOperation) -> Tree:
    """Return the data after an edit.

    Parameters
    ----------
    model : Model
        Model of the data.
    before : Tree
        The data before the edit; they stay as they are.
    config : ET.Element
        The element `config` of the request.
    default : EditOperation
        Operation of nodes that have none and inherit none: merge, replace or none.

    Returns
    -------
    Tree
        The data after it.

    Raises
    ------
    ServerRpcError
        If a part of the edit is not possible.
    """
    after: Tree = {} if default is EditOperation.REPLACE else copied(before)
    for child in config:
        _edit(model.children, after, child, default, "")
    _remove_empty(after)
    add_fixed(model.children, after)
    _check_conditions(model.children, before, after, "")
    return after


def _edit(children: Mapping[str, ModelNode], tree: Tree, node: ET.Element, inherited: EditOperation, path: str) -> None:
    namespace, name = split_tag(node.tag)
    model = children.get(name)
    if namespace not in PREFIXES:
        raise ServerRpcError(
            ErrorTag.UNKNOWN_NAMESPACE,
            f"The element {printable(name)} is of a namespace that this device does not have.",
            paths=[path] if path else [],
            info={"bad-element": printable(name), "bad-namespace": printable(namespace)},
        )
    if model is None or model.namespace != namespace:
        raise unknown_element(name, path)
    path = f"{path}/{PREFIXES[namespace]}:{name}"
    operation = _operation(node, inherited, path)
    match model:
        case ModelLeaf():
            _edit_leaf(model, tree, node, operation, path)
        case ModelContainer():
            if _reaches_inside(tree, name, operation, path):
                for child in node:
                    _edit(model.children, subtree(tree, name), child, operation, path)
        case ModelList():
            _edit_entry(model, subtree(tree, name), node, operation, path)


def _edit_leaf(model: ModelLeaf, tree: Tree, node: ET.Element, operation: EditOperation, path: str) -> None:
    name = split_tag(node.tag)[1]
    if operation is not EditOperation.NONE and _reaches_inside(tree, name, operation, path):
        tree[name] = _checked(model, node, path)


def _edit_entry(model: ModelList, entries: Tree, node: ET.Element, operation: EditOperation, path: str) -> None:
    namespace = model.namespace
    key_node = node.find(qualified(namespace, model.key))
    if key_node is None:
        raise missing_element(model.key, path)
    key_model = model.children[model.key]
    assert isinstance(key_model, ModelLeaf)
    prefix = PREFIXES[namespace]
    key = _checked(key_model, key_node, f"{path}/{prefix}:{model.key}")
    path = f"{path}[{prefix}:{model.key}='{key}']"
    if not _reaches_inside(entries, key, operation, path):
        return
    entry = subtree(entries, key)
    entry[model.key] = key
    for child in node:
        if child is not key_node:
            _edit(model.children, entry, child, operation, path)


def _reaches_inside(tree: Tree, name: str, operation: EditOperation, path: str) -> bool:
    """Do what an operation does to a node itself, and return whether its content is to be edited."""
    exists = bool(tree.get(name)) or isinstance(tree.get(name), str)
    if exists and operation is EditOperation.CREATE:
        raise ServerRpcError(ErrorTag.DATA_EXISTS, "The data to create exist already.", paths=[path])
    if not exists and operation in {EditOperation.DELETE, EditOperation.NONE}:
        if operation is EditOperation.NONE and not path.endswith("]"):
            return True
        raise ServerRpcError(ErrorTag.DATA_MISSING, "There are no such data.", paths=[path])
    if operation in {*_ENDING, EditOperation.REPLACE}:
        tree.pop(name, None)
    return operation not in _ENDING


def _operation(node: ET.Element, inherited: EditOperation, path: str) -> EditOperation:
    name = split_tag(node.tag)[1]
    for key in node.attrib:
        if key != _OPERATION:
            info = {"bad-attribute": printable(split_tag(key)[1]), "bad-element": name}
            raise ServerRpcError(ErrorTag.UNKNOWN_ATTRIBUTE, "The attribute is unknown.", paths=[path], info=info)
    text = node.get(_OPERATION)
    if text is None:
        return inherited
    try:
        operation = EditOperation(text)
    except ValueError:
        operation = EditOperation.NONE
    if operation is EditOperation.NONE:
        info = {"bad-attribute": "operation", "bad-element": name}
        message = "The operation must be one of merge, replace, create, delete and remove."
        raise ServerRpcError(ErrorTag.BAD_ATTRIBUTE, message, paths=[path], info=info)
    return operation


def _checked(model: ModelLeaf, node: ET.Element, path: str) -> str:
    if len(node):
        raise unknown_element(split_tag(node[0].tag)[1], path)
    try:
        return model.check(text_of(node))
    except ValueError as error:
        message = f"The value {printable(text_of(node))!r} {error}."
        raise ServerRpcError(ErrorTag.INVALID_VALUE, message, paths=[path]) from error


def _remove_empty(tree: Tree) -> None:
    for name, value in list(tree.items()):
        if isinstance(value, dict):
            _remove_empty(value)
            if not value:
                del tree[name]


def _check_conditions(children: Mapping[str, ModelNode], before: Tree, after: Tree, path: str) -> None:
    """Refuse new leaves whose condition does not hold, and remove former ones (RFC 7950 section 8.3.2)."""
    for name, node in children.items():
        value = after.get(name)
        here = f"{path}/{PREFIXES.get(node.namespace, '')}:{name}"
        earlier = before.get(name, {})
        if isinstance(value, dict):
            assert isinstance(earlier, dict)
            if isinstance(node, ModelContainer):
                _check_conditions(node.children, earlier, value, here)
            elif isinstance(node, ModelList):
                for key, entry in value.items():
                    former = earlier.get(key, {})
                    assert isinstance(entry, dict) and isinstance(former, dict)
                    prefix = PREFIXES[node.namespace]
                    _check_conditions(node.children, former, entry, f"{here}[{prefix}:{node.key}='{key}']")
        elif _may_not_exist(node, after) and value is not None:
            if earlier != value:
                raise unknown_element(name, here)
            del after[name]


def _may_not_exist(node: ModelNode, siblings: Tree) -> bool:
    return isinstance(node, ModelLeaf) and node.exists is not None and not node.exists(leaves_of(siblings))
