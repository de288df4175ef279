"""Trees of data as XML."""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree import ElementTree as ET

from optical_switch.emulator.netconf_server.data.schema import (
    Model,
    ModelContainer,
    ModelLeaf,
    ModelNode,
    Tree,
    leaves_of,
    with_defaults,
)
from optical_switch.emulator.netconf_server.messages.xml_text import element


def content(model: Model, tree: Tree) -> list[ET.Element]:
    """Return the data of a tree, defaults included, in the order of the model.

    A device that does not announce `with-defaults` (RFC 6243) may return defaults or leave them out; this one returns
    them, so that a client reads the settings of every port.
    """
    return _below(model.children, tree)


def _below(children: Mapping[str, ModelNode], tree: Tree) -> list[ET.Element]:
    values = with_defaults(children, leaves_of(tree))
    made: list[ET.Element] = []
    for name, node in children.items():
        if isinstance(node, ModelLeaf):
            if name in values:
                made.append(element(node.namespace, name, values[name]))
            continue
        inner = tree.get(name, {})
        assert isinstance(inner, dict)
        if isinstance(node, ModelContainer):
            if below := _below(node.children, inner):
                made.append(element(node.namespace, name, children=below))
        else:
            for key in sorted(inner, key=_by_number):
                entry = inner[key]
                assert isinstance(entry, dict)
                made.append(element(node.namespace, name, children=_below(node.children, entry)))
    return made


def _by_number(key: str) -> tuple[int, str]:
    return (int(key), "") if key.isdecimal() else (0, key)
