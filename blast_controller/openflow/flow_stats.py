"""Entries of a flow statistics reply read back as rules (OpenFlow 1.3.5, sections A.3.5.2, A.2.3 and A.2.4).

Read here and not by the framework, because its reading of a large table holds up every thread for a second, and fails
altogether on an instruction that it does not know.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network

from blast_controller.openflow.rules import Match, Rule, UnknownRule

IPV4 = 0x0800
"""EtherType of IPv4."""
_ENTRY = struct.Struct("!HBxIIHHHH4xQQQ")
_APPLY_ACTIONS = 4
"""OFPIT_APPLY_ACTIONS."""
_OUTPUT, _SET_QUEUE, _SET_FIELD = 0, 21, 25
# OXM headers: class, field, mask and length of the value (table 12).
_IN_PORT, _ETH_TYPE, _IPV4_SRC, _IPV4_DST = 0x80000004, 0x80000A02, 0x80001604, 0x80001804
_IPV4_DST_MASKED, _IP_DSCP = 0x80001908, 0x80001001


class MalformedEntryError(ValueError):
    """The ToR's fault: an entry whose lengths contradict each other."""


class _ForeignEntryError(Exception):
    """The entry is sound, but `Rule` has no words for it."""


def decode_entry(entry: bytes) -> Rule | UnknownRule:
    """Decode one ofp_flow_stats. Raises MalformedEntryError."""
    try:
        length, table, _, _, priority, idle, hard, _, cookie, _, _ = _ENTRY.unpack_from(entry)
        _, match_length = struct.unpack_from("!HH", entry, _ENTRY.size)
    except struct.error as error:
        raise MalformedEntryError(f"a flow statistics entry of {len(entry)} bytes is cut short") from error
    instructions = _ENTRY.size + (match_length + 7) // 8 * 8
    if length != len(entry) or match_length < 4 or instructions > length:
        raise MalformedEntryError(f"a flow statistics entry of {length} bytes has a match of {match_length}")
    match = entry[_ENTRY.size : _ENTRY.size + match_length]
    try:
        if idle or hard:
            raise _ForeignEntryError
        return Rule(table, priority, cookie, _match(match[4:]), *_treatment(entry[instructions:]))
    except _ForeignEntryError:
        return UnknownRule(table, priority, cookie, match)


def _match(fields: bytes) -> Match:
    found = dict(_fields(fields))
    ethertype = found.pop(_ETH_TYPE, None)
    in_port, source = found.pop(_IN_PORT, None), found.pop(_IPV4_SRC, None)
    destination, masked = found.pop(_IPV4_DST, None), found.pop(_IPV4_DST_MASKED, None)
    about_ipv4 = source or destination or masked
    if found or bool(about_ipv4) != (ethertype == struct.pack("!H", IPV4)):
        raise _ForeignEntryError
    return Match(
        None if in_port is None else int.from_bytes(in_port),
        None if source is None else IPv4Address(source),
        _network(destination + b"\xff" * 4 if destination else masked),
        None if ethertype is None or about_ipv4 else int.from_bytes(ethertype),
    )


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (OXM header, value) of every field."""
    while data:
        if len(data) < 4:
            raise _ForeignEntryError
        header = int.from_bytes(data[:4])
        end = 4 + (header & 0xFF)
        if end > len(data):
            raise _ForeignEntryError
        yield header, data[4:end]
        data = data[end:]


def _network(address_and_mask: bytes | None) -> IPv4Network | None:
    if address_and_mask is None:
        return None
    address, mask = IPv4Address(address_and_mask[:4]), IPv4Address(address_and_mask[4:])
    try:
        return IPv4Network(f"{address}/{mask}")
    except ValueError as error:
        raise _ForeignEntryError from error


def _treatment(instructions: bytes) -> tuple[tuple[int, ...], int | None, int | None]:
    """Return outputs, DSCP and queue."""
    if not instructions:
        return (), None, None
    if len(instructions) < 8 or struct.unpack_from("!HH", instructions) != (_APPLY_ACTIONS, len(instructions)):
        raise _ForeignEntryError
    actions = list(_actions(instructions[8:]))
    dscp = _dscp(actions.pop(0)[1]) if actions and actions[0][0] == _SET_FIELD else None
    queue = int.from_bytes(actions.pop(0)[1][:4]) if actions and actions[0][0] == _SET_QUEUE else None
    if not actions or any(kind != _OUTPUT or len(body) != 12 for kind, body in actions):
        raise _ForeignEntryError
    return tuple(int.from_bytes(body[:4]) for _, body in actions), dscp, queue


def _actions(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (type, body) of every action."""
    while data:
        if len(data) < 8:
            raise _ForeignEntryError
        kind, length = struct.unpack_from("!HH", data)
        if not 8 <= length <= len(data):
            raise _ForeignEntryError
        yield kind, data[4:length]
        data = data[length:]


def _dscp(body: bytes) -> int:
    if len(body) != 12 or int.from_bytes(body[:4]) != _IP_DSCP:
        raise _ForeignEntryError
    return body[4]
