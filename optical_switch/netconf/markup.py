"""XML of NETCONF: written as text, and read with Python's own parser within bounds.

Received text comes from a device that may be broken or taken over. A document type definition is refused before the
parser sees it: it could define entities that grow exponentially, or that read files. NETCONF is UTF-8 only (RFC 6241,
section 3), so that a search in the decoded text finds each one; other encodings, which the parser would recognize by
itself, are refused for the same reason. Depth and number of elements are limited as well. Python's own parser is enough
for this: lxml would be one more dependency, and would need the same settings against entities.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser
from xml.sax.saxutils import escape, quoteattr

from optical_switch.errors import ProtocolError

BASE = "urn:ietf:params:xml:ns:netconf:base:1.0"
"""Namespace of NETCONF itself (RFC 6241)."""
MAX_ELEMENTS = 100_000
"""Elements of a message: a thousand ports with five leaves each have 6000."""
MAX_DEPTH = 64
"""Nested elements: the model of a switch has ten."""
_DOCTYPE = "<!DOCTYPE"


class MarkupError(ProtocolError):
    """A message is no XML, or not of the kind that NETCONF permits."""


def element(name: str, *content: str, namespace: str = "", operation: str = "") -> str:
    """Return an element as text.

    Parameters
    ----------
    name : str
        Name of the element.
    *content : str
        Elements inside, or text without characters that XML reserves (`text` escapes them).
    namespace : str
        Namespace of the element and of those inside. Empty: that of the element around it.
    operation : str
        Operation of an edit (RFC 6241, section 7.2). Empty: none.

    Returns
    -------
    str
        The element.

    Examples
    --------
    >>> element("target", element("candidate"))
    '<target><candidate/></target>'
    """
    head = name
    if namespace:
        head += f" xmlns={quoteattr(namespace)}"
    if operation:
        head += f' xmlns:nc="{BASE}" nc:operation="{operation}"'
    return f"<{head}>{''.join(content)}</{name}>" if content else f"<{head}/>"


def text(value: str | int) -> str:
    """Return a value as the text of an element."""
    return escape(str(value))


def parse(message: bytes) -> Element:
    """Read a message.

    Parameters
    ----------
    message : bytes
        Message without framing.

    Returns
    -------
    Element
        The outermost element; names have their namespace in braces.

    Raises
    ------
    MarkupError
        If the message is no XML, has a document type definition, or is too deep or too large.
    """
    try:
        # White space around a message is no part of it; before an XML declaration it would be an error.
        decoded = message.decode().strip()
    except UnicodeDecodeError as error:
        raise MarkupError("the switch sends a message that is not in UTF-8") from error
    if "\0" in decoded or _DOCTYPE in decoded:
        raise MarkupError("the switch sends a document type definition or NUL, which NETCONF does not permit")
    parser = XMLParser(target=_BoundedBuilder())
    try:
        parser.feed(decoded)
        root = parser.close()
    except (ParseError, ValueError) as error:
        # The parser's text may quote the message.
        raise MarkupError("the switch sends a message that is no XML") from error
    assert isinstance(root, Element), "it comes from the builder"
    return root


def child(parent: Element, name: str, namespace: str = BASE) -> Element | None:
    """Return the first element of this name inside `parent`, or None."""
    return parent.find(f"{{{namespace}}}{name}")


def children(parent: Element, name: str, namespace: str = BASE) -> Iterator[Element]:
    """Yield the elements of this name inside `parent`."""
    return parent.iterfind(f"{{{namespace}}}{name}")


def value(parent: Element, name: str, namespace: str = BASE) -> str:
    """Return the text of the first element of this name inside `parent`, without white space around it."""
    found = child(parent, name, namespace)
    return "" if found is None or found.text is None else found.text.strip()


def local_name(found: Element) -> str:
    """Return the name of an element without its namespace."""
    return found.tag.rpartition("}")[2]


class _BoundedBuilder(TreeBuilder):
    def __init__(self) -> None:
        super().__init__()
        self._depth = 0
        self._count = 0

    def start(self, tag: str, attrs: dict[str, str], /) -> Element:
        self._depth += 1
        self._count += 1
        if self._depth > MAX_DEPTH:
            raise MarkupError(f"the switch sends elements in more than {MAX_DEPTH} levels")
        if self._count > MAX_ELEMENTS:
            raise MarkupError(f"the switch sends a message of more than {MAX_ELEMENTS} elements")
        return super().start(tag, attrs)

    def end(self, tag: str, /) -> Element:
        self._depth -= 1
        return super().end(tag)
