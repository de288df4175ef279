"""Operations on the wire: bytes laid out by hand from OpenFlow 1.3.5, section A.3.4.1, and read back."""

from __future__ import annotations

import struct
from ipaddress import IPv4Address, IPv4Network

import pytest

from blast_controller.openflow.framework import ofproto_v1_3, ofproto_v1_3_parser
from blast_controller.openflow.messages import encode, error_name, is_demotion, is_fenced, port_state
from blast_controller.openflow.rules import CONTROLLER, AddRule, DeleteRule, DeleteStray, Match, Rule, UnknownRule
from blast_controller.openflow.vocabulary import (
    CountRules,
    Fence,
    Message,
    PortState,
    ReadOurRules,
    RequestMaster,
    TransmitProbe,
)

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


def _encoded(*messages: Message) -> bytes:
    return encode(_Protocol, (*enumerate(messages, 0x100), (0x200, Fence())))


def _plain(kind: int, body: str) -> bytes:
    data = bytes.fromhex(body)
    return struct.pack("!BBHI", 4, kind, 8 + len(data), 0x100) + data


def _flow_mod(xid: int, cookie: str, mask: str, head: str, rest: str) -> bytes:
    body = bytes.fromhex(cookie + mask + head + rest)
    return struct.pack("!BBHI", 4, 14, 8 + len(body), xid) + body


BARRIER = struct.pack("!BBHI", 4, 20, 8, 0x200)


def test_added_rule_is_encoded_as_flow_mod() -> None:
    head = "02 00 0000 0000 9c40 ffffffff 00000000 00000000 0000 0000"
    expected = _flow_mod(0x100, "b1a5000300000007", "0" * 16, head, MATCH + ACTIONS)
    assert _encoded(AddRule(RULE)) == expected + BARRIER


def test_barrier_request_is_encoded_as_by_the_framework() -> None:
    request = ofproto_v1_3_parser.OFPBarrierRequest(_Protocol)
    request.set_xid(0x200)
    request.serialize()
    assert encode(_Protocol, [(0x200, Fence())]) == bytes(request.buf) == BARRIER


def test_drop_rule_has_no_instruction_and_a_network_mask() -> None:
    guard = Rule(0, 0x7530, 0xB1A5 << 48, Match(destination=IPv4Network("239.77.0.0/16")))
    head = "00 00 0000 0000 7530 ffffffff 00000000 00000000 0000 0000"
    match = "0001 0016 8000 0a02 0800 8000 1908 ef4d0000 ffff0000 0000"
    assert _encoded(AddRule(guard)) == _flow_mod(0x100, "b1a5000000000000", "0" * 16, head, match) + BARRIER


def test_strict_deletion_matches_the_owner_but_not_the_epoch() -> None:
    head = f"02 04 0000 0000 9c40 ffffffff {ANY} {ANY} 0000 0000"
    expected = _flow_mod(0x100, "b1a5000300000007", "ffff0000ffffffff", head, MATCH)
    assert _encoded(DeleteRule(RULE)) == expected + BARRIER


def test_stray_is_deleted_by_whole_cookie_and_original_match() -> None:
    strange = "0001 000d ffff 7f05 0102030405"  # a field that no framework knows
    stray = UnknownRule(3, 0x1234, 0xB1A5_0003_0000_0007, bytes.fromhex(strange))
    head = f"03 04 0000 0000 1234 ffffffff {ANY} {ANY} 0000 0000"
    expected = _flow_mod(0x100, "b1a5000300000007", "f" * 16, head, strange + "000000")
    assert _encoded(DeleteStray(stray)) == expected + BARRIER


def test_a_probe_guard_sends_whole_frames_to_the_controller() -> None:
    guard = Rule(0, 0x9C40, 0xB1A5 << 48, Match(in_port=9, ethertype=0x88B5), (CONTROLLER,))
    head = "00 00 0000 0000 9c40 ffffffff 00000000 00000000 0000 0000"
    match = "0001 0012 8000 0004 00000009 8000 0a02 88b5 000000000000"
    action = "0004 0018 00000000 0000 0010 fffffffd ffff 000000000000"
    assert _encoded(AddRule(guard)) == _flow_mod(0x100, "b1a5000000000000", "0" * 16, head, match + action) + BARRIER


def test_claim_requests_the_master_role_with_our_generation() -> None:
    assert _encoded(RequestMaster(0x0102030405060708)) == _plain(24, "00000002 00000000 0102030405060708") + BARRIER


def test_our_rules_are_read_by_magic_and_all_rules_are_counted() -> None:
    body = f"ff 000000 {ANY} {ANY} 00000000 b1a5000000000000 ffff000000000000 0001 0004 00000000"
    assert _encoded(ReadOurRules()) == _plain(18, "0001 0000 00000000" + body) + BARRIER
    body = f"ff 000000 {ANY} {ANY} 00000000 {'0' * 32} 0001 0004 00000000"
    assert _encoded(CountRules()) == _plain(18, "0002 0000 00000000" + body) + BARRIER


def test_probe_is_sent_from_the_controller_to_its_port() -> None:
    frame = "02b1a5000002 02b1a5000001 88b5 b1a50b0e 0003 616263" + "00" * 37
    action = "0000 0010 00000009 ffe5 000000000000"
    expected = _plain(13, f"ffffffff fffffffd 0010 000000000000 {action} {frame}")
    assert _encoded(TransmitProbe(9, b"abc")) == expected + BARRIER


class _Port:
    def __init__(self, config: int, state: int) -> None:
        self.port_no, self.config, self.state = 9, config, state


def test_port_is_up_if_enabled_and_linked() -> None:
    assert port_state(_Port(0, 4)) == PortState(9, True)
    assert port_state(_Port(0, 1)) == PortState(9, False, "it has no link")
    assert port_state(_Port(1, 1)) == PortState(9, False, "it is switched off")


@pytest.mark.parametrize(("kind", "code", "fenced"), [(11, 0, True), (1, 10, True), (11, 1, False), (5, 1, False)])
def test_stale_claim_and_write_of_a_slave_are_fenced(kind: int, code: int, fenced: bool) -> None:
    assert is_fenced(ofproto_v1_3_parser.OFPErrorMsg(_Protocol, kind, code)) is fenced


@pytest.mark.parametrize(
    ("experimenter", "kind", "data", "demoted"),
    [
        (0x4F4E4600, 1911, "00000003 00000000 0000000000000005", True),
        (0x4F4E4600, 1911, "00000002 00000000 0000000000000005", False),
        (0x4F4E4600, 1911, "0000", False),
        (0x2320, 1911, "00000003", False),
    ],
)
def test_a_role_status_of_slave_is_a_demotion(experimenter: int, kind: int, data: str, demoted: bool) -> None:
    message = ofproto_v1_3_parser.OFPExperimenter(_Protocol, experimenter, kind, bytes.fromhex(data))
    assert is_demotion(message) is demoted


def test_known_and_unknown_errors_have_names() -> None:
    error = ofproto_v1_3_parser.OFPErrorMsg
    assert error_name(error(_Protocol, 2, 4)) == "OFPET_BAD_ACTION, OFPBAC_BAD_OUT_PORT"
    assert error_name(error(_Protocol, 5, 1)) == "OFPET_FLOW_MOD_FAILED, OFPFMFC_TABLE_FULL"
    assert error_name(error(_Protocol, 0xFFFF, exp_type=3, experimenter=0x2320)).startswith("OFPET_EXPERIMENTER")
    assert error_name(error(_Protocol, 5, 999))
    assert error_name(error(_Protocol, 999, 1))
