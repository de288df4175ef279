"""Subtree filters, as section 6 of RFC 6241 defines them.

Two passes: the first marks what the filter selects, so that several parts of a filter can select parts of one element;
the second copies the marked nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from xml.etree import ElementTree as ET

from optical_switch.emulator.netconf_server.data.device_model import KEYS
from optical_switch.emulator.netconf_server.messages.names import split_tag
from optical_switch.emulator.netconf_server.messages.xml_text import text_of

_Marks = dict[int, bool]
"""Selected elements by identity: True with everything in them, False in part."""


def select(filters: Iterable[ET.Element], roots: Sequence[ET.Element]) -> list[ET.Element]:
    """Return the nodes that a filter selects.

    Parameters
    ----------
    filters : Iterable[ET.Element]
        The elements in the filter; data that any of them selects is returned.
    roots : Sequence[ET.Element]
        The data.

    Returns
    -------
    list[ET.Element]
        The selected data, in the order of `roots`.
    """
    marks: _Marks = {}
    for one in filters:
        for root in roots:
            _mark(one, root, marks)
    return [_pruned(root, marks) for root in roots if id(root) in marks]


def _mark(pattern: ET.Element, data: ET.Element, marks: _Marks) -> bool:
    """Mark what `pattern` selects in `data`, and return whether it selects anything."""
    if not _has_tag(pattern, data):
        return False
    if not len(pattern):
        # A selection node, or a content match node that stands alone (sections 6.2.4 and 6.2.5).
        if text_of(pattern) and text_of(pattern) != text_of(data):
            return False
        marks[id(data)] = True
        return True
    content_matches = [child for child in pattern if not len(child) and text_of(child)]
    if not all(any(_matches(one, child) for child in data) for one in content_matches):
        return False
    others = [child for child in pattern if len(child) or not text_of(child)]
    if not others:
        marks[id(data)] = True
        return True
    # All of them, since each marks. Section 6.2.5: nodes that match are returned even if they stand alone.
    found = [_mark(one, child, marks) for one in others for child in data]
    if not any(found) and not content_matches:
        return False
    for child in data:
        if _is_key(data, child) or any(_matches(one, child) for one in content_matches):
            marks[id(child)] = True
    marks.setdefault(id(data), False)
    return True


def _has_tag(pattern: ET.Element, data: ET.Element) -> bool:
    namespace, name = split_tag(pattern.tag)
    data_namespace, data_name = split_tag(data.tag)
    # Section 6.2.1: no namespace stands for all namespaces. Section 6.2.2: attributes must be equal.
    same = name == data_name and namespace in {"", data_namespace}
    return same and all(data.get(key) == value for key, value in pattern.attrib.items())


def _matches(pattern: ET.Element, data: ET.Element) -> bool:
    return _has_tag(pattern, data) and not len(data) and text_of(pattern) == text_of(data)


def _is_key(entry: ET.Element, leaf: ET.Element) -> bool:
    return KEYS.get(split_tag(entry.tag)[1]) == split_tag(leaf.tag)[1]


def _pruned(data: ET.Element, marks: _Marks) -> ET.Element:
    if marks[id(data)]:
        return data
    copy = ET.Element(data.tag, data.attrib)
    copy.extend(_pruned(child, marks) for child in data if id(child) in marks)
    return copy
