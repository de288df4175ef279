"""Messages and XML of NETCONF: examples of RFC 6241 and 5277, hostile XML, and text written and read again."""

from __future__ import annotations

import re
from xml.etree.ElementTree import fromstring

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optical_switch.errors import ProtocolError
from optical_switch.netconf import operations
from optical_switch.netconf.markup import BASE, MAX_DEPTH, MAX_ELEMENTS, MarkupError, element, parse, text
from optical_switch.netconf.messages import (
    BASE_1_0,
    BASE_1_1,
    NetconfNotification,
    RpcError,
    RpcReply,
    ServerHello,
    hello,
    read_message,
    rpc,
)

REPLY = f'<rpc-reply xmlns="{BASE}" message-id="101">{{}}</rpc-reply>'
LOCK_DENIED = """
  <rpc-error>
    <error-type>protocol</error-type>
    <error-tag>lock-denied</error-tag>
    <error-severity>error</error-severity>
    <error-message>Lock failed, lock is already held</error-message>
    <error-info><session-id>454</session-id></error-info>
  </rpc-error>"""
BAD_PAIR = """
  <rpc-error>
    <error-type>application</error-type>
    <error-tag>invalid-value</error-tag>
    <error-severity>error</error-severity>
    <error-path xmlns:o="urn:o">/rpc/edit-config/config/o:cross-connects/o:pair[o:ingress='7']/o:egress</error-path>
    <error-message xml:lang="en">no such\x20port &lt;1&gt;</error-message>
    <error-info><bad-element>egress</bad-element></error-info>
  </rpc-error>"""
WARNING = "<rpc-error><error-tag>operation-failed</error-tag><error-severity>warning</error-severity></rpc-error>"


# ------------------------------------------------------------------------------------------------------ messages


def test_hello_of_device_has_capabilities_and_session() -> None:
    found = read_message(
        b'<?xml version="1.0" encoding="UTF-8"?>\n'
        b'<hello xmlns="urn:ietf:params:xml:ns:netconf:base:1.0"><capabilities>'
        b"<capability>urn:ietf:params:netconf:base:1.1</capability>"
        b"<capability>\n http://example.net/router?module=a&amp;revision=2020-01-01 \n</capability>"
        b"</capabilities><session-id>4</session-id></hello>\n"
    )
    assert found == ServerHello(frozenset({BASE_1_1, "http://example.net/router?module=a&revision=2020-01-01"}), 4)


def test_own_hello_announces_both_framings() -> None:
    root = fromstring(hello())
    assert root.tag == f"{{{BASE}}}hello"
    assert [one.text for one in root.iter(f"{{{BASE}}}capability")] == [BASE_1_0, BASE_1_1]


def test_reply_is_read_with_its_errors() -> None:
    assert read_message(REPLY.format("<ok/>").encode()) == RpcReply("101")
    found = read_message(REPLY.format(LOCK_DENIED + WARNING + BAD_PAIR).encode())
    assert isinstance(found, RpcReply)
    denied, bad = found.errors
    assert denied == RpcError("lock-denied", "Lock failed, lock is already held", session_id=454)
    assert bad.path.endswith("o:pair[o:ingress='7']/o:egress")
    assert (bad.tag, bad.message, bad.bad_element) == ("invalid-value", "no such port <1>", "egress")


def test_error_text_of_device_is_limited_and_printable() -> None:
    shown = str(RpcError("operation-failed", "\x1b[2J\n" + "x" * 1000))
    assert shown.isprintable() and len(shown) < 220


def test_error_without_tag_is_still_an_error() -> None:
    found = read_message(REPLY.format("<rpc-error/>").encode())
    assert isinstance(found, RpcReply) and found.errors == (RpcError("operation-failed"),)


def test_notification_is_read() -> None:
    found = read_message(
        b'<notification xmlns="urn:ietf:params:xml:ns:netconf:notification:1.0">'
        b"<eventTime>2007-07-08T00:01:00Z</eventTime><event xmlns='http://example.com/event/1.0'/></notification>"
    )
    assert isinstance(found, NetconfNotification) and found.event.tag == "{http://example.com/event/1.0}event"


@pytest.mark.parametrize(
    "message",
    [
        f'<rpc xmlns="{BASE}" message-id="1"><close-session/></rpc>',
        "<rpc-reply message-id='1'><ok/></rpc-reply>",
        f'<hello xmlns="{BASE}"><session-id>4</session-id></hello>',
        f'<hello xmlns="{BASE}"><capabilities/></hello>',
        f'<hello xmlns="{BASE}"><capabilities/><session-id>{"9" * 5000}</session-id></hello>',
        f'<notification xmlns="{operations.NOTIFICATIONS}"><eventTime>now</eventTime></notification>',
    ],
)
def test_message_that_no_server_sends_is_rejected(message: str) -> None:
    with pytest.raises(ProtocolError):
        read_message(message.encode())


# ---------------------------------------------------------------------------------------------------- hostile XML

BOMB = (
    '<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>'
    f'<hello xmlns="{BASE}"><capabilities><capability>&b;</capability></capabilities></hello>'
)
FILE = '<!DOCTYPE hello [<!ENTITY secret SYSTEM "file:///etc/passwd">]><hello>&secret;</hello>'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp037"])
@pytest.mark.parametrize("document", [BOMB, FILE], ids=["exponential", "file"])
def test_document_type_definition_is_rejected_in_every_encoding(document: str, encoding: str) -> None:
    with pytest.raises(MarkupError):
        parse(document.encode(encoding))


@pytest.mark.parametrize(
    "message", [b"", b"<a>", b"<a/><b/>", b"<a>&unknown;</a>", b"<a>\0</a>", b"<a>\xff</a>", b"<n:a/>"]
)
def test_text_that_is_no_xml_is_rejected_without_quoting_it(message: bytes) -> None:
    with pytest.raises(MarkupError) as caught:
        parse(message)
    assert "unknown" not in str(caught.value)


def test_depth_and_number_of_elements_are_limited() -> None:
    def nested(depth: int) -> bytes:
        return b"<a>" * depth + b"</a>" * depth

    def flat(count: int) -> bytes:
        return b"<a>" + b"<b/>" * (count - 1) + b"</a>"

    parse(nested(MAX_DEPTH))
    parse(flat(MAX_ELEMENTS))
    for message, name in ((nested(MAX_DEPTH + 1), "levels"), (flat(MAX_ELEMENTS + 1), "elements")):
        with pytest.raises(MarkupError, match=name):
            parse(message)


# -------------------------------------------------------------------------------------------------------- writing


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\ufffe\uffff")))
def test_text_is_read_as_it_was_written(written: str) -> None:
    assert (parse(element("label", text(written)).encode()).text or "") == written


def test_no_text_ends_a_message_in_the_first_framing() -> None:
    assert b"]]>]]>" not in rpc("1", operations.create_subscription("]]>]]>"))


def test_requests_are_those_of_the_rfc() -> None:
    def flat(operation: str) -> str:
        root = fromstring(rpc("1", operation))
        assert root.tag == f"{{{BASE}}}rpc" and root.get("message-id") == "1"
        return re.sub(r" xmlns(:\w+)?=\"[^\"]*\"", "", operation)

    assert flat(operations.lock("candidate")) == "<lock><target><candidate/></target></lock>"
    assert flat(operations.unlock("running")) == "<unlock><target><running/></target></unlock>"
    assert flat(operations.edit_config("running", "<a/>", rollback=True)) == (
        "<edit-config><target><running/></target><error-option>rollback-on-error</error-option>"
        "<config><a/></config></edit-config>"
    )
    assert flat(operations.get("<a/>")) == '<get><filter type="subtree"><a/></filter></get>'
    assert flat(operations.get_config("<a/>")) == (
        '<get-config><source><running/></source><filter type="subtree"><a/></filter></get-config>'
    )
    assert flat(operations.create_subscription("Polatis")) == (
        "<create-subscription><stream>Polatis</stream></create-subscription>"
    )
