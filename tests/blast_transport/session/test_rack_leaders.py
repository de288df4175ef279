"""Assignment of receivers to leaders, and the messages between sender and leader."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_transport.base.errors import LocalProtocolError, RemoteProtocolError
from blast_transport.links.racks import MAX_PER_LEADER, groups
from blast_transport.wire.codec import FRAME, VERSION, encode
from blast_transport.wire.messages import Heartbeat
from blast_transport.wire.relaying import (
    MAX_MEMBERS,
    Envelope,
    GroupCredit,
    Member,
    MemberCredits,
    Relay,
    RelayCredit,
    RelayDecoder,
    encode_relay,
)

SAMPLES = [
    Relay((("h1", "10.0.0.1", 9095), ("h2", "::1", 1))),
    Member(3),
    Member(3, "cannot connect"),
    Envelope((0, 1, 255), encode(Heartbeat(1, 2))),
    RelayCredit(7, 1 << 20),
    GroupCredit(1, 2, 3, (4, 5)),
    GroupCredit(1, 2, 2),
    MemberCredits(1, ((0, 1, 2, 3), (1, 4, 5, 6))),
]


def test_relay_messages_decode_byte_by_byte():
    stream, decoder = b"".join(map(encode_relay, SAMPLES)), RelayDecoder()
    assert [message for byte in stream for message in decoder.feed(bytes([byte]))] == SAMPLES


@pytest.mark.parametrize(
    "body",
    [
        (64, b'{"members":[]}'),
        (64, b'{"members":[["h","a",0]]}'),
        (66, b"\0\0" + encode(Heartbeat(1, 2))),
        (66, b"\1\0\0\0" + encode(Heartbeat(1, 2))[:-1]),
        (66, b"\1\0\0\0" + encode(Heartbeat(1, 2)) + b"\0"),
        (66, b"\xff\xff" + bytes(1 << 17)),
        (67, b"\0"),
        (68, bytes(20) + b"\1\0"),
        (68, bytes(22) + b"\0"),
        (69, bytes(5)),
    ],
)
def test_invalid_relay_message_is_rejected(body):
    number, content = body
    with pytest.raises(RemoteProtocolError):
        RelayDecoder().feed(FRAME.pack(len(content), number, VERSION) + content)


@given(st.integers(64, 69), st.binary(max_size=80))
def test_any_relay_body_is_decoded_or_rejected(number, content):
    try:
        (message,) = RelayDecoder().feed(FRAME.pack(len(content), number, VERSION) + content)
    except RemoteProtocolError:
        return
    assert RelayDecoder().feed(encode_relay(message)) == [message]


def test_relay_rejects_too_many_members():
    with pytest.raises(LocalProtocolError):
        encode_relay(RelayCredit(1 << 16, 0))
    with pytest.raises(RemoteProtocolError):
        Relay((("h", "a", 1),) * (MAX_MEMBERS + 1)).check()


def test_few_receivers_get_no_leaders():
    assert groups(["b", "a"], {"a": "r", "b": "r"}, 2) == [("b",), ("a",)]


def test_each_rack_gets_leader_and_unknown_hosts_form_a_group():
    racks = {"h1": "west", "h10": "east", "h2": "west"}
    assert groups(["h10", "x", "h2", "h1", "y"], racks, 1) == [("h1", "h2"), ("h10",), ("x", "y")]


@given(st.integers(1, 200), st.integers(1, 5), st.data())
def test_each_host_is_in_one_bounded_group_of_one_rack(count, racks, data):
    names = [f"h{number}" for number in range(count)]
    rack_of = {name: str(data.draw(st.integers(0, racks))) for name in names[: data.draw(st.integers(0, count))]}
    found = groups(names, rack_of, 0)
    assert sorted(name for group in found for name in group) == sorted(names)
    assert all(len({rack_of.get(name) for name in group}) == 1 for group in found)
    assert max(map(len, found)) <= MAX_PER_LEADER
    smallest = {
        rack: -(-sum(rack_of.get(n) == rack for n in names) // MAX_PER_LEADER) for rack in map(rack_of.get, names)
    }
    assert len(found) == sum(smallest.values())
