"""Decoding of flow statistics into rules, strays and errors."""

from __future__ import annotations

import struct
from dataclasses import replace
from ipaddress import IPv4Network

import pytest

from blast_controller.openflow.flow_stats import MalformedEntryError, decode_entry
from blast_controller.openflow.framework import RawEntry
from blast_controller.openflow.rules import Match, Rule, UnknownRule
from tests.blast_controller.devices.test_openflow_messages import RULE
from tests.support.controller.openflow_entries import entry, match_bytes, raw_entry, treatment

WIRE = bytes.fromhex(
    "0098 02 00 0000000c 00000159 9c40 0000 0000 0000 00000000 b1a5000300000007 00000000000003e8 00000000000007d0"
    "0001 0022 80000004 00000001 80000a02 0800 80001604 0a000001 80001804 ef4d0001 000000000000"
    "0004 0040 00000000 0019 0010 80001001 2e 00000000000000 0015 0008 00000004"
    "0000 0010 00000002 ffe5 000000000000 0000 0010 00000009 0000 000000000000"
)


def test_entry_laid_out_by_hand_decodes_to_its_rule() -> None:
    assert decode_entry(WIRE) == RULE


def test_full_mask_decodes_to_a_host_address() -> None:
    match = struct.pack("!HHIHI", 1, 22, 0x80000A02, 0x0800, 0x80001908) + bytes.fromhex("ef4d0001 ffffffff")
    assert decode_entry(raw_entry(0, 1, 2, match, b"")) == Rule(
        0, 1, 2, Match(destination=IPv4Network("239.77.0.1/32"))
    )


OUTPUT = struct.pack("!HHIH6x", 0, 16, 2, 0)
STRAYS = {
    "it will vanish when idle": entry(RULE, idle=5),
    "it will vanish": entry(RULE, hard=5),
    "another instruction": entry(RULE, instructions=struct.pack("!HHB3x", 1, 8, 3)),
    "an instruction more": entry(RULE, instructions=treatment(RULE) + struct.pack("!HHB3x", 1, 8, 3)),
    "an unknown instruction": entry(RULE, instructions=struct.pack("!HH4x", 0x7777, 8)),
    "actions of length 0": entry(RULE, instructions=struct.pack("!HH4x", 4, 16) + bytes(8)),
    "no action": entry(RULE, instructions=struct.pack("!HH4x", 4, 8)),
    "another field is set": entry(RULE, instructions=struct.pack("!HH4xHHIB7x", 4, 24, 25, 16, 0x80001201, 4)),
    "a group": entry(RULE, instructions=struct.pack("!HH4xHHI", 4, 16, 22, 8, 1)),
    "marked after the output": entry(
        RULE, instructions=struct.pack("!HH4x", 4, 40) + OUTPUT + struct.pack("!HHIB7x", 25, 16, 0x80001001, 46)
    ),
    "a field of another protocol": raw_entry(0, 1, 2, bytes.fromhex("0001 0012 80000a02 0806 80002c04 0a000001"), b""),
    "IPv4 without an address": raw_entry(0, 1, 2, bytes.fromhex("0001 000a 80000a02 0800"), b""),
    "a mask with holes": raw_entry(0, 1, 2, bytes.fromhex("0001 0016 80000a02 0800 80001908 ef4d0000 ff00ff00"), b""),
    "a field cut short": raw_entry(0, 1, 2, bytes.fromhex("0001 000a 80000004 0000"), b""),
}


@pytest.mark.parametrize("data", STRAYS.values(), ids=STRAYS.keys())
def test_entry_that_blast_never_writes_is_a_stray(data: bytes) -> None:
    stray = decode_entry(data)
    assert isinstance(stray, UnknownRule)
    assert data[48:].startswith(stray.match)


def test_stray_keeps_its_place_and_its_match() -> None:
    assert decode_entry(entry(RULE, hard=1)) == UnknownRule(2, 0x9C40, RULE.cookie, match_bytes(RULE.match))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        entry(RULE)[:50],
        entry(RULE)[:-8],
        entry(RULE) + bytes(8),
        entry(RULE)[:50] + b"\xff\xff" + entry(RULE)[52:],
        entry(RULE)[:50] + b"\0\0" + entry(RULE)[52:],
    ],
)
def test_contradicting_lengths_raise_malformed_entry_error(data: bytes) -> None:
    with pytest.raises(MalformedEntryError):
        decode_entry(data)


@pytest.mark.parametrize("length", [0, 55, 57])
def test_reply_with_invalid_entry_length_is_rejected(length: int) -> None:
    with pytest.raises(ValueError, match="flow statistics entry"):
        RawEntry.parser(struct.pack("!H", length) + bytes(54), 0)


def test_reply_is_split_into_entries() -> None:
    data = entry(RULE) + entry(replace(RULE, priority=7))
    first = RawEntry.parser(data, 0)
    assert [decode_entry(e.data) for e in (first, RawEntry.parser(data, first.length))] == [
        RULE,
        replace(RULE, priority=7),
    ]
