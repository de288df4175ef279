"""Flow statistics entries built by hand (OpenFlow 1.3.5, section A.3.5.2), for tests of their decoder."""

from __future__ import annotations

import struct

from blast_controller.openflow.rules import Match, Rule


def entry(rule: Rule, idle: int = 0, hard: int = 0, flags: int = 0, instructions: bytes | None = None) -> bytes:
    """Return the ofp_flow_stats of a rule that has existed for some time."""
    body = treatment(rule) if instructions is None else instructions
    return raw_entry(rule.table, rule.priority, rule.cookie, match_bytes(rule.match), body, (idle, hard, flags))


def raw_entry(
    table: int, priority: int, cookie: int, match: bytes, instructions: bytes, timing: tuple[int, int, int] = (0, 0, 0)
) -> bytes:
    """Return an ofp_flow_stats of these parts; `timing` is idle time-out, hard time-out, flags."""
    padded = match + bytes(-len(match) % 8)
    length = 48 + len(padded) + len(instructions)
    head = struct.pack("!HBxIIHHHH4xQQQ", length, table, 12, 345, priority, *timing, cookie, 1000, 2000)
    return head + padded + instructions


def match_bytes(match: Match) -> bytes:
    """Return the ofp_match without padding."""
    fields = b""
    if match.in_port is not None:
        fields += struct.pack("!II", 0x80000004, match.in_port)
    ethertype = 0x0800 if match.source or match.destination else match.ethertype
    if ethertype is not None:
        fields += struct.pack("!IH", 0x80000A02, ethertype)
    if match.source:
        fields += struct.pack("!I", 0x80001604) + match.source.packed
    if match.destination:
        network, mask = match.destination.network_address.packed, match.destination.netmask.packed
        whole = match.destination.prefixlen == 32
        fields += struct.pack("!I", 0x80001804 if whole else 0x80001908) + network + (b"" if whole else mask)
    return struct.pack("!HH", 1, 4 + len(fields)) + fields


def treatment(rule: Rule) -> bytes:
    """Return the instructions of a rule."""
    actions = b""
    if rule.dscp is not None:
        actions += struct.pack("!HHIB7x", 25, 16, 0x80001001, rule.dscp)
    if rule.queue is not None:
        actions += struct.pack("!HHI", 21, 8, rule.queue)
    for port in rule.outputs:
        actions += struct.pack("!HHIH6x", 0, 16, port, 0)
    return struct.pack("!HH4x", 4, 8 + len(actions)) + actions if actions else b""
