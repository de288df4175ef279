"""Operations on the wire: bytes laid out by hand from OpenFlow 1.3.5, section A.3.4.1, and read back."""

from __future__ import annotations

import struct
from ipaddress import IPv4Address, IPv4Network

from blast_controller.openflow.framework import ofproto_v1_3, ofproto_v1_3_parser
from blast_controller.openflow.messages import encode, error_name
from blast_controller.openflow.rules import AddRule, DeleteAllOurs, DeleteRule, Match, Operation, Rule
from blast_controller.openflow.steps import Transmit

RULE = Rule(
    table=2,
    priority=0x9C40,
    cookie=0xB1A5_0003_0000_0007,
    match=Match(1, IPv4Address("10.0.0.1"), IPv4Network("239.77.0.1/32")),
    outputs=(2, 9),
    dscp=46,
    queue=4,
)
ANY = "ffffffff"
MATCH = (
    "0001 0022"  # OFPMT_OXM, 34 bytes
    "8000 0004 00000001"  # in_port
    "8000 0a02 0800"  # eth_type
    "8000 1604 0a000001"  # ipv4_src
    "8000 1804 ef4d0001"  # ipv4_dst
    "000000000000"  # padding to 8 bytes
)
ACTIONS = (
    "0004 0040 00000000"  # OFPIT_APPLY_ACTIONS
    "0019 0010 8000 1001 2e 00000000000000"  # set_field ip_dscp = 46
    "0015 0008 00000004"  # set_queue
    "0000 0010 00000002 ffe5 000000000000"  # output
    "0000 0010 00000009 ffe5 000000000000"
)


class _Protocol:
    ofproto = ofproto_v1_3
    ofproto_parser = ofproto_v1_3_parser


def _encoded(*operations: Operation) -> bytes:
    return encode(_Protocol, Transmit(None, tuple(enumerate(operations, 0x100)), 0x200))


def _flow_mod(xid: int, cookie: str, mask: str, head: str, rest: str) -> bytes:
    body = bytes.fromhex(cookie + mask + head + rest)
    return struct.pack("!BBHI", 4, 14, 8 + len(body), xid) + body


BARRIER = struct.pack("!BBHI", 4, 20, 8, 0x200)


def test_an_added_rule() -> None:
    head = "02 00 0000 0000 9c40 ffffffff 00000000 00000000 0000 0000"
    expected = _flow_mod(0x100, "b1a5000300000007", "0" * 16, head, MATCH + ACTIONS)
    assert _encoded(AddRule(RULE)) == expected + BARRIER


def test_a_dropping_rule_has_no_instruction_and_a_network_a_mask() -> None:
    guard = Rule(0, 0x7530, 0xB1A5 << 48, Match(destination=IPv4Network("239.77.0.0/16")))
    head = "00 00 0000 0000 7530 ffffffff 00000000 00000000 0000 0000"
    match = "0001 0016 8000 0a02 0800 8000 1908 ef4d0000 ffff0000 0000"
    assert _encoded(AddRule(guard)) == _flow_mod(0x100, "b1a5000000000000", "0" * 16, head, match) + BARRIER


def test_a_strict_deletion_names_the_owner_but_not_the_epoch() -> None:
    head = f"02 04 0000 0000 9c40 ffffffff {ANY} {ANY} 0000 0000"
    expected = _flow_mod(0x100, "b1a5000300000007", "ffff0000ffffffff", head, MATCH)
    assert _encoded(DeleteRule(RULE)) == expected + BARRIER


def test_clearing_names_the_magic_only() -> None:
    head = f"03 03 0000 0000 8000 ffffffff {ANY} {ANY} 0000 0000"
    expected = _flow_mod(0x100, "b1a5000000000000", "ffff000000000000", head, "0001 0004 00000000")
    assert _encoded(DeleteAllOurs(3)) == expected + BARRIER


def test_every_message_has_its_own_xid() -> None:
    data, xids = _encoded(AddRule(RULE), DeleteRule(RULE)), []
    while data:
        _, _, length, xid = struct.unpack_from("!BBHI", data)
        xids.append(xid)
        data = data[length:]
    assert xids == [0x100, 0x101, 0x200]


def test_errors_are_named_also_those_that_the_framework_does_not_know() -> None:
    error = ofproto_v1_3_parser.OFPErrorMsg
    assert error_name(error(_Protocol, 2, 4)) == "OFPET_BAD_ACTION, OFPBAC_BAD_OUT_PORT"
    assert error_name(error(_Protocol, 5, 1)) == "OFPET_FLOW_MOD_FAILED, OFPFMFC_TABLE_FULL"
    assert error_name(error(_Protocol, 0xFFFF, exp_type=3, experimenter=0x2320)).startswith("OFPET_EXPERIMENTER")
    assert error_name(error(_Protocol, 5, 999))
    assert error_name(error(_Protocol, 999, 1))
