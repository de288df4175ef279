"""Whatever a ToR tells of its rules is a rule, a stray, or a typed error of its own; half of it almost valid."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

from hypothesis import given, settings
from hypothesis import strategies as st

from blast_controller.openflow.flow_stats import MalformedEntry, decode_entry
from blast_controller.openflow.probe import MOST_BYTES, probe_frame, probe_payload
from blast_controller.openflow.rules import Match, Rule, Stray
from tests.support.openflow_entries import entry

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


@settings(max_examples=1000)
@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    _reads(data)


@settings(max_examples=2000)
@given(rules, st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=4), st.integers(-8, 0))
def test_almost_valid_bytes(rule: Rule, changes: list[tuple[int, int]], cut: int) -> None:
    data = bytearray(entry(rule))
    for place, value in changes:
        data[place % len(data)] = value
    _reads(bytes(data[: len(data) + cut]))


def _reads(data: bytes) -> None:
    try:
        read = decode_entry(data)
    except MalformedEntry:
        return
    if isinstance(read, Stray):
        assert len(read.match) >= 4
        assert read.match in data
    else:
        assert isinstance(read, Rule)


@given(st.binary(max_size=MOST_BYTES), st.binary(max_size=40))
def test_a_probe_is_read_back_whatever_padding_follows(payload: bytes, padding: bytes) -> None:
    assert len(probe_frame(payload)) >= 60
    assert probe_payload(probe_frame(payload) + padding) == payload


@given(st.binary(max_size=100))
def test_other_frames_are_no_probes(frame: bytes) -> None:
    assert probe_payload(frame) is None or frame[12:14] == b"\x88\xb5"
    assert probe_payload(probe_frame(bytes(80))[: 18 + len(frame) % 80]) is None
