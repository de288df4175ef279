"""XML of NETCONF messages, read within bounds and written with default namespaces.

RFC 6241 section 3 forbids document types; without one, XML has no entities that could expand or refer to files.
"""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape, quoteattr

from optical_switch.emulator.netconf_server.messages.names import qualified, split_tag

MAX_DEPTH = 32
"""Nesting of elements. The deepest message of the models has 8 levels; filters and edits are walked by recursion."""

_XML = "http://www.w3.org/XML/1998/namespace"


class XmlTextError(ValueError):
    """A text is no XML, or XML that a NETCONF message must not have."""


class _ServerTreeBuilder(ET.TreeBuilder):
    def __init__(self) -> None:
        super().__init__()
        self._depth = 0

    def doctype(self, *_names: str | None) -> None:
        """Refuse a document type before its entities are read."""
        raise XmlTextError("a document type is not allowed in NETCONF")

    def start(self, tag: str, attrs: dict[str, str], /) -> ET.Element:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise XmlTextError(f"more than {MAX_DEPTH} levels of elements")
        return super().start(tag, attrs)

    def end(self, tag: str, /) -> ET.Element:
        self._depth -= 1
        return super().end(tag)


def parse_xml(data: bytes) -> ET.Element:
    """Return the root element of a text. Raises `XmlTextError`."""
    parser = ET.XMLParser(target=_ServerTreeBuilder())
    try:
        # Section 3 of RFC 6241 allows UTF-8 only, whatever the declaration at the start of the text may name. Some
        # clients send a line break between the end of a message and the declaration of the next.
        parser.feed(data.decode().lstrip())
        root = parser.close()
    except (ET.ParseError, UnicodeDecodeError) as error:
        raise XmlTextError(f"not well-formed: {error}") from error
    assert isinstance(root, ET.Element)
    return root


def element(namespace: str, name: str, text: str | None = None, children: Iterable[ET.Element] = ()) -> ET.Element:
    """Return a new element."""
    made = ET.Element(qualified(namespace, name))
    made.text = text
    made.extend(children)
    return made


def text_of(one: ET.Element) -> str:
    """Return the text of a leaf, without white space around it."""
    return (one.text or "").strip()


def to_xml(root: ET.Element) -> str:
    """Return the text of an element. A namespace is declared where it differs from that of the parent."""
    parts = ['<?xml version="1.0" encoding="UTF-8"?>']
    _write(root, "", parts)
    return "".join(parts)


def _write(one: ET.Element, inherited: str, parts: list[str]) -> None:
    namespace, name = split_tag(one.tag)
    declared = "" if namespace == inherited else f" xmlns={quoteattr(namespace)}"
    parts.append(f"<{name}{declared}{_attributes(one)}")
    if len(one):
        parts.append(">")
        for child in one:
            _write(child, namespace, parts)
        parts.append(f"</{name}>")
    elif one.text:
        parts.append(f">{escape(one.text)}</{name}>")
    else:
        parts.append("/>")


def _attributes(one: ET.Element) -> str:
    parts = []
    for number, (key, value) in enumerate(one.attrib.items()):
        namespace, name = split_tag(key)
        if namespace == _XML:
            name = f"xml:{name}"
        elif namespace:
            parts.append(f" xmlns:a{number}={quoteattr(namespace)}")
            name = f"a{number}:{name}"
        parts.append(f" {name}={quoteattr(value)}")
    return "".join(parts)
