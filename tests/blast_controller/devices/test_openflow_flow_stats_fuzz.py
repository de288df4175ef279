"""Fuzz tests of flow statistics: random ones yield rules, foreign entries or typed errors, and reading always ends."""

from __future__ import annotations

import random
import struct
from ipaddress import IPv4Address, IPv4Network

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blast_controller.openflow import framework
from blast_controller.openflow.flow_stats import MalformedEntryError, decode_entry
from blast_controller.openflow.probe import MAX_BYTES, probe_frame, probe_payload
from blast_controller.openflow.rules import Match, Rule, UnknownRule
from blast_controller.openflow.screening import is_readable
from tests.support.controller.openflow_entries import entry
from tests.support.fuzzing import Decoder, fuzz, inputs

rules = st.builds(
    Rule,
    table=st.integers(0, 254),
    priority=st.integers(0, 0xFFFF),
    cookie=st.integers(0, (1 << 64) - 1),
    match=st.one_of(
        st.builds(
            Match,
            in_port=st.none() | st.integers(1, 0xFFFF_FF00),
            source=st.none() | st.integers(0, 0xFFFF_FFFF).map(IPv4Address),
            destination=st.integers(0, 0xFFFF_FFFF).map(lambda a: IPv4Network((a >> 8 << 8, 24))),
        ),
        st.builds(Match, in_port=st.none() | st.integers(1, 9), ethertype=st.none() | st.just(0x88B5)),
    ),
    outputs=st.lists(st.integers(1, 0xFFFF_FFFD), min_size=1, max_size=4).map(tuple),
    dscp=st.none() | st.integers(0, 63),
    queue=st.none() | st.integers(0, 0xFFFF_FFFE),
)


@settings(max_examples=300)
@given(rules)
def test_every_rule_is_read_back(rule: Rule) -> None:
    assert decode_entry(entry(rule)) == rule


def seeds() -> list[bytes]:
    """Return rules with and without each part."""
    matches = [
        Match(3, IPv4Address("10.0.0.1"), IPv4Network("239.77.0.1/32")),
        Match(None, None, IPv4Network("239.77.0.0/16")),
        Match(7, ethertype=0x88B5),
        Match(7),
        Match(),
    ]
    return [
        entry(Rule(0, 40_000, 0xB1A5 << 48, match, outputs, dscp, queue))
        for match in matches
        for outputs in ((1,), (1, 2, 50))
        for dscp, queue in ((None, None), (46, None), (0, 3))
    ]


def changed(rng: random.Random, data: bytes) -> bytes:
    """Return the data with one to four bytes changed, and sometimes truncated."""
    entry_ = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        entry_[rng.randrange(len(entry_))] = rng.choice([0, 1, 4, 8, 0xFF, rng.randrange(256)])
    return bytes(entry_[: len(entry_) - rng.choice([0, 0, 0, rng.randrange(9)])]) or b"\0"


def check(_rng: random.Random, data: bytes) -> str:
    try:
        read = decode_entry(data)
    except MalformedEntryError:
        return "refused"
    if isinstance(read, UnknownRule):
        assert len(read.match) >= 4
        assert read.match in data
        return "a stray"
    assert isinstance(read, Rule)
    return "a rule"


ENTRIES = Decoder(
    "openflow rules", seeds(), changed, lambda rng: rng.randbytes(rng.randrange(1, 200)), check, ("/flow_stats.py",)
)


def test_random_and_mutated_entries_decode_or_are_rejected() -> None:
    run = fuzz(ENTRIES, inputs(6000))
    assert min(run.outcomes[name] for name in ("refused", "a stray", "a rule")) > run.inputs // 100, run.outcomes


@given(st.binary(max_size=MAX_BYTES), st.binary(max_size=40))
def test_probe_is_read_back_with_any_padding(payload: bytes, padding: bytes) -> None:
    assert len(probe_frame(payload)) >= 60
    assert probe_payload(probe_frame(payload) + padding) == payload


@given(st.binary(max_size=100))
def test_other_frames_are_no_probes(frame: bytes) -> None:
    assert probe_payload(frame) is None or frame[12:14] == b"\x88\xb5"
    assert probe_payload(probe_frame(bytes(80))[: 18 + len(frame) % 80]) is None


# ---------------------------------------------------------------------------------------------- messages

MESSAGES = inputs(6000)
LONGEST = 400
_parse = framework._ofproto_parser.msg


class _Datapath:
    ofproto, ofproto_parser, address = framework.ofproto_v1_3, framework.ofproto_v1_3_parser, "fuzz"


def message(dice: random.Random) -> bytes:
    """Return zeros with some random bytes, which decode to lists without an end."""
    kind = dice.choice([0, 0, 4, 6, 10, 10, 11, 12, 19, 19, 19, dice.randrange(256)])
    body = bytearray(dice.randrange(LONGEST))
    for _ in range(dice.randrange(1 + len(body) // 4)):
        body[dice.randrange(len(body))] = dice.choice([1, 4, 8, 16, dice.randrange(256)])
    if kind == 19:
        body[:2] = struct.pack("!H", dice.choice([1, 2, 13, dice.randrange(16)]))
    version = 4 if dice.random() < 0.9 else dice.randrange(256)
    return struct.pack("!BBHI", version, kind, 8 + len(body), dice.randrange(1 << 32)) + bytes(body)


# By a thread: the parsers swallow every exception, the one of a signal too.
@pytest.mark.timeout(60, method="thread")
def test_parsing_of_every_readable_message_ends() -> None:
    dice = random.Random("openflow messages")
    read = 0
    for _ in range(MESSAGES):
        sent = message(dice)
        try:
            readable = is_readable(sent)
        except ValueError:
            assert sent[0] != 4
            continue
        if readable:
            version, kind, length, xid = framework.HEADER.unpack_from(sent)
            try:
                read += _parse(_Datapath(), version, kind, length, xid, sent) is not None
            except Exception as error:  # noqa: BLE001 - the frameworks' errors have no common class
                assert type(error).__name__ in ("OFPTruncatedMessage", "OFPUnknownVersion")
    assert read > MESSAGES / 20, "some are understood"


def test_hello_must_end_with_its_last_element() -> None:
    bitmap = struct.pack("!HHI", 1, 8, 1 << 4)
    for elements, expected in (
        (b"", True),
        (bitmap, True),
        (bitmap + bitmap, True),
        (bytes(4), False),
        (bitmap + b"\0", False),
        (struct.pack("!HH", 1, 3), False),
    ):
        assert is_readable(struct.pack("!BBHI", 5, 0, 8 + len(elements), 1) + elements) is expected
