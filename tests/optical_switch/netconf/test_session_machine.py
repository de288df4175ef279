"""The state machine of a NETCONF session with a scripted peer: hello, replies, deadlines, floods."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optical_switch.errors import ProtocolError, SwitchUsageError, UnreachableError
from optical_switch.netconf.framing import NetconfDecoder, in_one_chunk, with_end
from optical_switch.netconf.markup import BASE
from optical_switch.netconf.messages import BASE_1_0, BASE_1_1, RpcReply
from optical_switch.netconf.operations import commit, lock
from optical_switch.netconf.session import (
    EXPECTED,
    MAX_PENDING,
    Greeted,
    NetconfPhase,
    NetconfSession,
    Notified,
    Replied,
    SessionBroken,
)
from optical_switch.unsolicited import BURST, FLOOD


def device_hello(*capabilities: str) -> bytes:
    listed = "".join(f"<capability>{one}</capability>" for one in capabilities)
    return f'<hello xmlns="{BASE}"><capabilities>{listed}</capabilities><session-id>4</session-id></hello>'.encode()


def reply(message_id: object, content: str = "<ok/>") -> bytes:
    return f'<rpc-reply xmlns="{BASE}" message-id="{message_id}">{content}</rpc-reply>'.encode()


def notification(text: str = "") -> bytes:
    return (
        f'<notification xmlns="urn:ietf:params:xml:ns:netconf:notification:1.0"><eventTime/><event>{text}</event>'
        "</notification>"
    ).encode()


def established(*capabilities: str, timeout: float = 2.0) -> NetconfSession:
    session = NetconfSession(timeout, 0.0)
    session.data_to_send()
    [greeted] = session.receive(with_end(device_hello(*(capabilities or (BASE_1_1,)))), 0.0)
    assert isinstance(greeted, Greeted) and greeted.hello.session_id == 4
    return session


def broken(events: list[object]) -> Exception:
    [event] = events
    assert isinstance(event, SessionBroken)
    return event.error


# ----------------------------------------------------------------------------------------------------------- hello


@pytest.mark.parametrize(
    ("capabilities", "frame"),
    [((BASE_1_0,), with_end), ((BASE_1_0, BASE_1_1), in_one_chunk), ((BASE_1_1,), in_one_chunk)],
)
def test_framing_follows_from_the_hello_of_the_device(capabilities, frame) -> None:
    session = established(*capabilities)
    message_id = session.request(commit(), 0.0)
    decoder = NetconfDecoder()
    if frame is in_one_chunk:
        decoder.use_chunks()
    decoder.feed(session.data_to_send())
    sent = decoder.next_message()
    assert sent is not None and b"<commit/>" in sent and session.data_to_send() == b""
    assert session.receive(frame(reply(message_id)), 0.0) == [Replied(RpcReply(message_id))]


def test_own_hello_is_sent_first_and_once() -> None:
    session = NetconfSession(2.0, 0.0)
    assert session.data_to_send().endswith(b"</hello>]]>]]>")
    assert session.data_to_send() == b""


@pytest.mark.parametrize(
    "first",
    [device_hello("urn:ietf:params:netconf:base:2.0"), reply(1), notification(), b"SSH-2.0-Box", b""],
    ids=["unknown version", "reply", "notification", "no XML", "empty"],
)
def test_peer_that_does_not_begin_with_a_usable_hello_is_rejected(first: bytes) -> None:
    session = NetconfSession(2.0, 0.0)
    assert isinstance(broken(session.receive(with_end(first), 0.0)), ProtocolError)
    with pytest.raises(SwitchUsageError):
        session.request(commit(), 0.0)


def test_device_that_sends_no_hello_is_unreachable() -> None:
    session = NetconfSession(2.0, 10.0)
    assert session.next_timer() == 12.0 and session.handle_timer(11.9) == []
    error = broken(session.handle_timer(12.0))
    assert isinstance(error, UnreachableError) and "does not answer hello within 2 s" in str(error)
    assert session.next_timer() is None and session.handle_timer(99.0) == []


# -------------------------------------------------------------------------------------------------------- requests


def test_deadline_is_that_of_the_oldest_request() -> None:
    session = established()
    first = session.request(lock("running"), 1.0)
    session.request(commit(), 2.0)
    assert session.next_timer() == 3.0
    session.receive(in_one_chunk(reply(first)), 2.5)
    assert session.next_timer() == 4.0 and session.handle_timer(3.0) == []
    assert "does not answer commit" in str(broken(session.handle_timer(4.0)))


def test_late_reply_after_the_deadline_is_not_read() -> None:
    session = established()
    message_id = session.request(commit(), 0.0)
    session.handle_timer(2.0)
    assert session.receive(in_one_chunk(reply(message_id)), 2.1) == [] and session.data_to_send() == b""


def test_requests_without_an_answer_are_limited() -> None:
    session = established()
    ids = [session.request(commit(), 0.0) for _ in range(MAX_PENDING)]
    with pytest.raises(SwitchUsageError, match="wait for one"):
        session.request(commit(), 0.0)
    session.receive(in_one_chunk(reply(ids[0])), 0.0)
    session.request(commit(), 0.0)


@pytest.mark.parametrize("message_id", ["7", "0", "", "1"], ids=["of the future", "zero", "none", "answered"])
def test_reply_to_no_request_breaks_the_session(message_id: str) -> None:
    session = established()
    session.request(commit(), 0.0)
    assert session.receive(in_one_chunk(reply(1)), 0.0)
    error = "<rpc-error><error-tag>malformed-message</error-tag></rpc-error>"
    found = broken(session.receive(in_one_chunk(reply(message_id, error)), 0.0))
    assert isinstance(found, ProtocolError) and "no request of this session (malformed-message)" in str(found)


@pytest.mark.parametrize("message", [device_hello(BASE_1_1), b"<x/>", b"<rpc-reply", b"\xff"])
def test_anything_but_replies_and_notifications_breaks_the_session(message: bytes) -> None:
    session = established()
    session.request(commit(), 0.0)
    events = session.receive(in_one_chunk(reply(1)) + in_one_chunk(message) + in_one_chunk(reply(1)), 0.0)
    assert events[0] == Replied(RpcReply("1"))
    assert isinstance(broken(events[1:]), ProtocolError)


def test_phases_expect_a_hello_then_replies_and_notifications_then_nothing() -> None:
    assert set(EXPECTED) == set(NetconfPhase) and EXPECTED[NetconfPhase.OVER] == ()


# --------------------------------------------------------------------------------------------------- notifications


def test_notifications_may_come_between_replies() -> None:
    session = established()
    session.request(commit(), 0.0)
    events = session.receive(in_one_chunk(notification("x")) + in_one_chunk(reply(1)), 0.0)
    assert [type(event) for event in events] == [Notified, Replied]


@pytest.mark.parametrize("size", [0, 100_000])
def test_flood_of_notifications_breaks_the_session(size: int) -> None:
    session = established()
    message = in_one_chunk(notification("x" * size))
    for _ in range(BURST // 1024 + 1):
        events = session.receive(message, 0.0)
        if isinstance(events[0], SessionBroken):
            break
    assert str(broken(events)) == FLOOD


def test_alarms_at_a_moderate_rate_do_not_break_the_session() -> None:
    session = established()
    for number in range(5000):
        assert isinstance(session.receive(in_one_chunk(notification()), number / 10)[0], Notified)


# ------------------------------------------------------------------------------------------------------------ any peer


@given(
    st.lists(
        st.one_of(
            st.integers(0, 6).map(reply),
            st.builds(notification),
            st.just(device_hello(BASE_1_1)),
            st.binary(max_size=20),
        ),
        max_size=8,
    ),
    st.lists(st.integers(1, 50)),
)
def test_requests_end_once_whatever_the_peer_sends(messages: list[bytes], cuts: list[int]) -> None:
    session = established()
    open_ids = {session.request(commit(), 0.0) for _ in range(4)}
    stream = b"".join(in_one_chunk(message) for message in messages if message)
    at, events = 0, []
    for size in [*cuts, len(stream)]:
        events += session.receive(stream[at : at + size], 1.0)
        at += size
    for event in events:
        if isinstance(event, Replied):
            open_ids.remove(event.reply.message_id)
    assert all(not isinstance(event, SessionBroken) for event in events[:-1])
    if not (events and isinstance(events[-1], SessionBroken)):
        assert (session.next_timer() is not None) == bool(open_ids)
        assert len(session.handle_timer(2.0)) == bool(open_ids)
    assert session.next_timer() is None
