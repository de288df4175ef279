"""XML of messages on the device's side, without a connection."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optical_switch.emulator.netconf_server.messages.xml_text import MAX_DEPTH, XmlTextError, parse_xml, to_xml

EXPANDING = (
    '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "bbbbbbbbbb"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]><a>&c;&c;</a>'
)


@pytest.mark.parametrize("text", [EXPANDING, '<!DOCTYPE a SYSTEM "file:///etc/hostname"><a/>', "<!DOCTYPE a><a/>"])
def test_document_type_is_refused(text: str) -> None:
    """RFC 6241 section 3."""
    with pytest.raises(XmlTextError, match="document type"):
        parse_xml(text.encode())


@pytest.mark.parametrize(
    "data", [b"", b"<a>", b"<a/><b/>", b"<a>&undefined;</a>", b"<a>\xff</a>", "<a/>".encode("utf-16")]
)
def test_text_that_is_no_xml_is_refused(data: bytes) -> None:
    with pytest.raises(XmlTextError):
        parse_xml(data)


def test_nesting_is_bounded() -> None:
    assert parse_xml(b"<a>" * MAX_DEPTH + b"</a>" * MAX_DEPTH).tag == "a"
    with pytest.raises(XmlTextError, match="levels"):
        parse_xml(b"<a>" * (MAX_DEPTH + 1) + b"</a>" * (MAX_DEPTH + 1))


def test_line_break_before_declaration_is_accepted() -> None:
    assert parse_xml(b'\n<?xml version="1.0" encoding="UTF-8"?><a/>').tag == "a"


def test_namespaces_are_declared_where_they_change() -> None:
    source = '<a xmlns="urn:a"><b x="1"/><c xmlns="urn:c"><d xmlns=""/></c></a>'
    assert to_xml(parse_xml(source.encode())).endswith(source)


NAMES = st.sampled_from(["a", "b", "c-d"])
SPACES = st.sampled_from(["", "urn:a", "urn:b&c"])
TAGS = st.builds(lambda space, name: f"{{{space}}}{name}" if space else name, SPACES, NAMES)
# Control characters are not allowed in XML, and line ends are normalized by every parser.
TEXTS = st.text(st.characters(min_codepoint=32, exclude_categories=["Cs", "Cc", "Cn"]), max_size=8)
ATTRIBUTES = st.dictionaries(TAGS, TEXTS.map(lambda text: f"{text}\n"), max_size=3)


def _made(tag: str, attributes: dict[str, str], content: str | list[ET.Element]) -> ET.Element:
    made = ET.Element(tag, attributes)
    if isinstance(content, str):
        made.text = content or None
    else:
        made.extend(content)
    return made


TREES = st.recursive(
    st.builds(_made, TAGS, ATTRIBUTES, TEXTS),
    lambda inner: st.builds(_made, TAGS, ATTRIBUTES, st.lists(inner, max_size=3)),
)


@given(TREES)
def test_written_elements_are_read_as_they_were(tree: ET.Element) -> None:
    again = parse_xml(to_xml(tree).encode())
    assert ET.canonicalize(ET.tostring(again)) == ET.canonicalize(ET.tostring(tree))


def test_end_of_message_does_not_occur_in_text() -> None:
    """RFC 6242 section 4.3."""
    one = ET.Element("a", {"b": "]]>]]>"})
    one.text = "]]>]]>"
    assert "]]>" not in to_xml(one)
