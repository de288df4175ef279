"""Hello messages, framing and malformed messages, by raw bytes over SSH."""

from __future__ import annotations

import pytest

from optical_switch.emulator.netconf_server.channel import MAX_WAITING
from optical_switch.emulator.netconf_server.messages.framing import MAX_MESSAGE
from optical_switch.emulator.netconf_server.messages.names import AnnouncedFeature
from tests.optical_switch.netconf_server.raw_client import (
    BASE,
    BASE_1_0,
    BASE_1_1,
    END,
    NAMES,
    OPSW,
    PLTS,
    arrived,
    cross_connects,
    edit,
    errors_of,
    netconf_lab,
)
from tests.support.waiting import eventually_async

HELLO_1_0 = f'<hello xmlns="{BASE}"><capabilities><capability>{BASE_1_0}</capability></capabilities></hello>'
HELLO_1_1 = HELLO_1_0.replace(BASE_1_0, BASE_1_1)

XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"


async def test_device_greets_before_the_client() -> None:
    """RFC 6241 section 8.1: neither peer waits for the hello message of the other."""
    async with netconf_lab() as lab:
        session = await lab.open()
        greeting = await session.read()
        assert greeting.tag == f"{{{BASE}}}hello"
        assert int(greeting.findtext("nc:session-id", "", NAMES)) == 1
        uris = {one.text for one in greeting.iterfind("nc:capabilities/nc:capability", NAMES)}
        assert uris == {
            BASE_1_0,
            BASE_1_1,
            "urn:ietf:params:netconf:capability:candidate:1.0",
            "urn:ietf:params:netconf:capability:confirmed-commit:1.1",
            "urn:ietf:params:netconf:capability:rollback-on-error:1.0",
            "urn:ietf:params:netconf:capability:notification:1.0",
            "urn:ietf:params:netconf:capability:interleave:1.0",
            f"{OPSW}?module=optical-switch&revision=2018-03-22",
            f"{PLTS}?module=polatis-switch&revision=2018-01-19",
        }


async def test_announced_features_are_a_setting() -> None:
    added, removed = [AnnouncedFeature.WRITABLE_RUNNING, AnnouncedFeature.VALIDATE], [AnnouncedFeature.BASE_1_1]
    async with netconf_lab(add=added, without=removed) as lab:
        session = await lab.session()
        assert set(added) <= session.capabilities and not set(removed) & session.capabilities
        # The client announces both base versions.
        await session.ok("<discard-changes/>")


async def test_session_numbers_are_never_used_twice() -> None:
    """RFC 6241 section 8.1."""
    async with netconf_lab() as lab:
        first = await lab.session()
        await first.ok("<close-session/>")
        assert (first.number, (await lab.session()).number) == (1, 2)


@pytest.mark.parametrize("hello", [HELLO_1_0, HELLO_1_1])
async def test_requests_may_follow_hello_in_one_write(hello: str) -> None:
    """RFC 6242 section 4.1: the framing after the hello message depends on the base version of both."""
    rpc = f'<rpc message-id="1" xmlns="{BASE}"><discard-changes/></rpc>'.encode()
    async with netconf_lab() as lab:
        session = await lab.open()
        if hello == HELLO_1_1:
            session.send(hello.encode() + END + b"\n#5\n%b\n#%d\n%b\n##\n" % (rpc[:5], len(rpc) - 5, rpc[5:]))
        else:
            session.send(hello.encode() + END + rpc + END)
        await session.read()
        session.chunked = hello == HELLO_1_1
        assert [one.tag for one in await session.read()] == [f"{{{BASE}}}ok"]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"<hello/>" + END, id="8.1 other namespace"),
        pytest.param(HELLO_1_0.replace("base:1.0</cap", "base:7.0</cap").encode() + END, id="8.1 no common version"),
        pytest.param(
            HELLO_1_0.replace("</hello>", "<session-id>4</session-id></hello>").encode() + END, id="8.1 session-id"
        ),
        pytest.param(b"<hello" + END, id="3 not well-formed"),
        pytest.param(b"x" * (MAX_MESSAGE + 32), id="no end of message"),
        pytest.param(f'<rpc message-id="1" xmlns="{BASE}"><get/></rpc>'.encode() + END, id="8.1 request first"),
    ],
)
async def test_wrong_hello_ends_session(data: bytes) -> None:
    async with netconf_lab() as lab:
        session = await lab.open()
        await session.read()
        session.send(data)
        assert await session.ended() == b""
        await eventually_async(lambda: not lab.switch.sessions, "the session to end")


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\n#0\n", id="chunk of no bytes"),
        pytest.param(b"<rpc/>]]>]]>", id="older framing"),
        pytest.param(b"\n#4294967295\n", id="message beyond the bound"),
    ],
)
async def test_wrong_chunks_end_session(data: bytes) -> None:
    """RFC 6242 section 4.2."""
    async with netconf_lab() as lab:
        session = await lab.session()
        session.send(data)
        assert await session.ended() == b""


async def test_malformed_message_is_answered_and_session_goes_on() -> None:
    """RFC 6241 section 3 and appendix A."""
    async with netconf_lab() as lab:
        session = await lab.session()
        for text in ("<rpc", "<!DOCTYPE rpc><rpc/>", "<a>" * 40 + "</a>" * 40, HELLO_1_1):
            session.send_message(text)
            reply = await session.read()
            assert "message-id" not in reply.attrib
            assert [(error.layer, error.tag) for error in errors_of(reply)] == [("rpc", "malformed-message")]
        await session.ok("<discard-changes/>")


async def test_malformed_message_ends_session_of_older_version() -> None:
    """RFC 6241 appendix A: `malformed-message` must not be sent to a client of base version 1.0."""
    async with netconf_lab() as lab:
        session = await lab.session(BASE_1_0)
        session.send_message("<rpc")
        assert await session.ended() == b""


async def test_reply_has_all_attributes_of_request() -> None:
    """RFC 6241 section 4.1 and 4.2."""
    async with netconf_lab() as lab:
        session = await lab.session()
        session.send_message(
            f'<rpc message-id="a&quot;b&#10;" xmlns="{BASE}" xmlns:ex="urn:ex" ex:user="fred" xml:lang="de" a="&lt;">'
            "<x/></rpc>"
        )
        reply = await session.read()
        assert reply.attrib == {"message-id": 'a"b\n', "{urn:ex}user": "fred", XML_LANG: "de", "a": "<"}


async def test_request_without_message_id_is_refused() -> None:
    """RFC 6241 section 4.1."""
    async with netconf_lab() as lab:
        session = await lab.session()
        session.send_message(f'<rpc xmlns="{BASE}"><get/></rpc>')
        (error,) = errors_of(await session.read())
        assert (error.layer, error.tag) == ("rpc", "missing-attribute")
        assert error.info == {"bad-attribute": "message-id", "bad-element": "rpc"}


async def test_request_has_one_operation() -> None:
    """RFC 6241 section 4.1."""
    async with netconf_lab() as lab:
        session = await lab.session()
        assert (await session.error("")).tag == "missing-element"
        assert (await session.error("<discard-changes/><commit/>")).tag == "unknown-element"


@pytest.mark.parametrize(
    "operation", ["<copy-config/>", "<validate/>", f'<get xmlns="{OPSW}"/>', f'<system-restart xmlns="{OPSW}"/>']
)
async def test_unknown_operation_is_not_supported(operation: str) -> None:
    """RFC 6241 appendix A."""
    async with netconf_lab() as lab:
        assert (await (await lab.session()).error(operation)).tag == "operation-not-supported"


async def test_requests_are_answered_in_order() -> None:
    """RFC 6241 section 4.5, with more requests than the device keeps."""
    async with netconf_lab() as lab:
        session = await lab.session()
        numbers = [session.request("<discard-changes/>") for _ in range(1000)]
        replies = [(await session.read()).get("message-id") for _ in numbers]
        assert replies == [str(number) for number in numbers]


async def test_requests_of_fast_client_wait_in_its_own_memory() -> None:
    """The device keeps a bounded number of requests; SSH stops the client."""
    async with netconf_lab() as lab:
        connection = await lab.ssh()
        session = await lab.open(connection)
        await session.hello()
        await session.ok(edit(cross_connects((1, 9))))
        lab.paths.released.clear()
        numbers = [session.request("<commit/>"), *(session.request("<discard-changes/>") for _ in range(5000))]
        served = lab.switch._registry.channels[session.number]
        await eventually_async(lambda: len(served._waiting) >= MAX_WAITING - 1, "the requests to arrive")
        await arrived(connection)
        # One packet of SSH has at most 32 KiB.
        assert len(served._waiting) < MAX_WAITING + 32768 // 100
        lab.paths.released.set()
        assert [(await session.read()).get("message-id") for _ in numbers] == [str(number) for number in numbers]


async def test_client_that_reads_late_gets_all_replies() -> None:
    """The device goes on with a request only when the client has received earlier replies."""
    async with netconf_lab() as lab:
        # A small window of SSH, so that few replies fill it.
        session = await lab.open(window=1 << 15)
        await session.hello()
        session.writer.channel.pause_reading()
        numbers = [session.request("<get/>") for _ in range(100)]
        served = lab.switch._registry.channels[session.number]
        await eventually_async(lambda: not served._writable.is_set(), "the replies to fill the window")
        assert served._waiting
        session.writer.channel.resume_reading()
        assert [(await session.read()).get("message-id") for _ in numbers] == [str(number) for number in numbers]


async def test_requests_before_end_of_input_are_answered() -> None:
    async with netconf_lab() as lab:
        session = await lab.session()
        for _ in range(3):
            session.request("<discard-changes/>")
        session.writer.write_eof()
        assert (await session.ended()).count(b"<ok/>") == 3
        await eventually_async(lambda: not lab.switch.sessions, "the session to end")
