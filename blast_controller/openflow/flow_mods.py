"""Changes of rules as bytes (OpenFlow 1.3.5, sections A.3.4.1, A.2.3, A.2.4 and A.2.5).

Written here and not by the framework, which takes a hundred times as long for the fields of a match, and several rules
are written in every grant. `flow_stats.py` reads the same fields back.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from ipaddress import IPv4Network

from blast_controller.openflow.rules import CONTROLLER, OWNER_MASK, AddRule, DeleteRule, DeleteStray, Match, Rule

_IPV4 = 0x0800
_VERSION, _FLOW_MOD = 4, 14
_ADD, _DELETE_STRICT = 0, 4
_NO_BUFFER, _ANY = 0xFFFF_FFFF, 0xFFFF_FFFF
_WHOLE_COOKIE = 0xFFFF_FFFF_FFFF_FFFF
_WHOLE_FRAME = 0xFFFF
"""OFPCML_NO_BUFFER: to the controller whole, and not kept in a buffer of the switch."""
_WHATEVER = 0xFFE5
"""OFPCML_MAX."""
_HEADER = struct.Struct("!BBHI")
_FIXED = struct.Struct("!QQBBHHHIIIH2x")
_MATCH = struct.Struct("!HH")
_PORT_FIELD = struct.Struct("!II")
_TYPE_FIELD = struct.Struct("!IH")
_DSCP_ACTION = struct.pack("!HHI", 25, 16, 0x80001001)
_QUEUE_ACTION = struct.Struct("!HHI")
_OUTPUT_ACTION = struct.Struct("!HHIH6x")
_APPLY = struct.Struct("!HH4x")
# OXM headers: class, field, mask and length of the value (table 12).
_IN_PORT, _ETH_TYPE = 0x80000004, 0x80000A02
_IPV4_TYPE = _TYPE_FIELD.pack(_ETH_TYPE, _IPV4)
_IPV4_SRC, _IPV4_DST, _IPV4_DST_MASKED = (h.to_bytes(4) for h in (0x80001604, 0x80001804, 0x80001908))


def flow_mod(xid: int, change: AddRule | DeleteRule | DeleteStray) -> bytes:
    """Return an OFPT_FLOW_MOD."""
    match change:
        case AddRule(rule):
            body = _fixed(rule.cookie, 0, rule.table, _ADD, rule.priority)
            body += _padded(_match(rule.match)) + _instructions(rule)
        case DeleteRule(rule):
            body = _fixed(rule.cookie, OWNER_MASK, rule.table, _DELETE_STRICT, rule.priority)
            body += _padded(_match(rule.match))
        case DeleteStray(stray):
            # The match of the deletion is the rule's own, unparsed.
            body = _fixed(stray.cookie, _WHOLE_COOKIE, stray.table, _DELETE_STRICT, stray.priority)
            body += _padded(stray.match)
    return _HEADER.pack(_VERSION, _FLOW_MOD, _HEADER.size + len(body), xid) + body


def _fixed(cookie: int, mask: int, table: int, command: int, priority: int) -> bytes:
    target = 0 if command == _ADD else _ANY
    return _FIXED.pack(cookie, mask, table, command, 0, 0, priority, _NO_BUFFER, target, target, 0)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 8)


def _match(match: Match) -> bytes:
    fields = b""
    if match.in_port is not None:
        fields += _PORT_FIELD.pack(_IN_PORT, match.in_port)
    if match.source is not None or match.destination is not None:
        fields += _IPV4_TYPE
    elif match.ethertype is not None:
        fields += _TYPE_FIELD.pack(_ETH_TYPE, match.ethertype)
    if match.source is not None:
        fields += _IPV4_SRC + match.source.packed
    if match.destination is not None:
        fields += _destination(match.destination)
    return _MATCH.pack(1, _MATCH.size + len(fields)) + fields


def _destination(network: IPv4Network) -> bytes:
    address = network.network_address.packed
    return _IPV4_DST + address if network.prefixlen == 32 else _IPV4_DST_MASKED + address + network.netmask.packed


def _instructions(rule: Rule) -> bytes:
    if not rule.outputs:
        return b""
    actions = b"".join(_actions(rule))
    return _APPLY.pack(4, _APPLY.size + len(actions)) + actions


def _actions(rule: Rule) -> Iterator[bytes]:
    if rule.dscp is not None:
        yield _DSCP_ACTION + bytes([rule.dscp]) + bytes(7)
    if rule.queue is not None:
        yield _QUEUE_ACTION.pack(21, 8, rule.queue)
    for port in rule.outputs:
        yield _OUTPUT_ACTION.pack(0, 16, port, _WHOLE_FRAME if port == CONTROLLER else _WHATEVER)
