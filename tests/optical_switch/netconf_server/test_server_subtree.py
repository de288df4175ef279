"""Subtree filters on the device's side (RFC 6241 section 6), without a connection."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from optical_switch.emulator.netconf_server.data.subtree import select

DATA = """
<port-config xmlns="urn:m">
  <port><port-id>1</port-id><label>spine</label><peer-port>a</peer-port></port>
  <port><port-id>2</port-id><label>leaf</label><peer-port>b</peer-port></port>
  <port><port-id>3</port-id><label>leaf</label><peer-port/></port>
</port-config>
"""
OTHER = '<voa xmlns="urn:m"><port><port-id>9</port-id><mode>none</mode></port></voa>'


def filtered(pattern: str) -> str:
    """Return the data that a filter selects, without namespaces and white space."""
    roots = [ET.fromstring(DATA), ET.fromstring(OTHER)]
    found = select(ET.fromstring(f"<filter>{pattern}</filter>"), roots)
    for root in found:
        for one in root.iter():
            one.tag = one.tag.partition("}")[2]
            one.text = (one.text or "").strip()
            one.tail = ""
    return "".join(ET.tostring(root, encoding="unicode", short_empty_elements=True) for root in found)


PORT_2 = "<port><port-id>2</port-id><label>leaf</label><peer-port>b</peer-port></port>"
PORT_3 = "<port><port-id>3</port-id><label>leaf</label><peer-port /></port>"
VOA = "<voa><port><port-id>9</port-id><mode>none</mode></port></voa>"


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        pytest.param("", "", id="6.4.2 an empty filter selects nothing"),
        pytest.param('<voa xmlns="urn:m"/>', VOA, id="6.2.4 selection node"),
        pytest.param('<voa xmlns="urn:m"></voa><nothing xmlns="urn:m"/>', VOA, id="6.2.4 nothing for absent data"),
        pytest.param('<voa xmlns="urn:m">text</voa>', "", id="6.2.5 text of a container"),
        pytest.param('<voa xmlns="urn:other"/>', "", id="6.2.1 other namespace"),
        pytest.param('<voa xmlns=""/>', VOA, id="6.2.1 no namespace matches all"),
        pytest.param('<voa xmlns="urn:m" a="1"/>', "", id="6.2.2 attributes must be equal"),
        pytest.param(
            '<port-config xmlns="urn:m"><port><label/></port></port-config>',
            "<port-config><port><port-id>1</port-id><label>spine</label></port>"
            "<port><port-id>2</port-id><label>leaf</label></port>"
            "<port><port-id>3</port-id><label>leaf</label></port></port-config>",
            id="6.2.3 containment, with keys",
        ),
        pytest.param(
            '<port-config xmlns="urn:m"><port><port-id> 2 </port-id></port></port-config>',
            f"<port-config>{PORT_2}</port-config>",
            id="6.2.5 content match, white space around it ignored",
        ),
        pytest.param(
            '<port-config xmlns="urn:m"><port><label>leaf</label></port></port-config>',
            f"<port-config>{PORT_2}{PORT_3}</port-config>",
            id="6.2.5 content match on any leaf",
        ),
        pytest.param(
            '<port-config xmlns="urn:m"><port><label>leaf</label><port-id>3</port-id></port></port-config>',
            f"<port-config>{PORT_3}</port-config>",
            id="6.2.5 all content matches must hold",
        ),
        pytest.param(
            '<port-config xmlns="urn:m"><port><label>leaf</label><peer-port/></port></port-config>',
            "<port-config><port><port-id>2</port-id><label>leaf</label><peer-port>b</peer-port></port>"
            "<port><port-id>3</port-id><label>leaf</label><peer-port /></port></port-config>",
            id="6.2.5 content match with selection",
        ),
        pytest.param(
            '<port-config xmlns="urn:m"><port><label>spine</label><absent/></port></port-config>',
            "<port-config><port><port-id>1</port-id><label>spine</label></port></port-config>",
            id="6.2.5 nodes that match are returned even alone",
        ),
        pytest.param(
            '<port-config xmlns="urn:m"><port><port-id>7</port-id></port></port-config>', "", id="6.2.5 no match"
        ),
        pytest.param(
            '<port-config xmlns="urn:m"><port><port-id>2</port-id></port><port><port-id>3</port-id><label/></port>'
            "</port-config>",
            f"<port-config>{PORT_2}<port><port-id>3</port-id><label>leaf</label></port></port-config>",
            id="6.3 siblings select independently",
        ),
        pytest.param(
            '<port-config xmlns="urn:m"><port><port-id>2</port-id><label/></port>'
            "<port><port-id>2</port-id><peer-port/></port></port-config>",
            f"<port-config>{PORT_2}</port-config>",
            id="6.3 two parts of one entry",
        ),
        pytest.param(
            '<port-config xmlns="urn:m"><port><port-id>2</port-id><label/></port><port/></port-config>',
            filtered('<port-config xmlns="urn:m"/>'),
            id="6.3 a whole entry wins over a part before it",
        ),
        pytest.param(
            '<port-config xmlns="urn:m"><port/><port><port-id>2</port-id><label/></port></port-config>',
            filtered('<port-config xmlns="urn:m"/>'),
            id="6.3 a whole entry wins over a part behind it",
        ),
    ],
)
def test_filter_selects(pattern: str, expected: str) -> None:
    assert filtered(pattern) == expected
