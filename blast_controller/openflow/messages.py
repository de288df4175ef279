"""Operations as OpenFlow 1.3 messages, and OpenFlow errors as words (OpenFlow 1.3.5, sections A.3.4 and A.4.4)."""

from __future__ import annotations

from typing import Any

from blast_controller.openflow.framework import ofproto_v1_3 as ofproto
from blast_controller.openflow.framework import ofproto_v1_3_parser as parser
from blast_controller.openflow.rules import (
    MAGIC,
    MAGIC_MASK,
    OWNER_MASK,
    AddRule,
    DeleteAllOurs,
    DeleteRule,
    Match,
    Operation,
    Rule,
)
from blast_controller.openflow.steps import Transmit

IPV4 = 0x0800


def encode(protocol: Any, message: Transmit) -> bytes:
    """The bytes of every operation and the barrier. `protocol` is a connection (or a ProtocolDesc) that knows 1.3."""
    messages = [(xid, _flow_mod(protocol, operation)) for xid, operation in message.operations]
    messages.append((message.barrier, parser.OFPBarrierRequest(protocol)))
    return b"".join(_serialized(flow_mod, xid) for xid, flow_mod in messages)


def error_name(error: Any) -> str:
    """What an OFPErrorMsg complains about, e.g. "OFPET_BAD_ACTION, OFPBAC_BAD_OUT_PORT"."""
    if error.type == ofproto.OFPET_EXPERIMENTER:
        return f"OFPET_EXPERIMENTER, experimenter {error.experimenter:#x}, type {error.exp_type}"
    names = (ofproto.ofp_error_type_to_str(error.type), ofproto.ofp_error_code_to_str(error.type, error.code))
    return ", ".join(name.partition("(")[0] for name in names)


def _serialized(message: Any, xid: int) -> bytes:
    message.set_xid(xid)
    message.serialize()
    return bytes(message.buf)


def _flow_mod(protocol: Any, operation: Operation) -> Any:
    match operation:
        case AddRule(rule):
            return parser.OFPFlowMod(
                protocol,
                command=ofproto.OFPFC_ADD,
                table_id=rule.table,
                priority=rule.priority,
                cookie=rule.cookie,
                match=_match(rule.match),
                instructions=_instructions(rule),
            )
        case DeleteRule(rule):
            return _deletion(
                protocol,
                command=ofproto.OFPFC_DELETE_STRICT,
                table_id=rule.table,
                priority=rule.priority,
                cookie=rule.cookie,
                cookie_mask=OWNER_MASK,
                match=_match(rule.match),
            )
        case DeleteAllOurs(table):
            return _deletion(
                protocol,
                command=ofproto.OFPFC_DELETE,
                table_id=table,
                cookie=MAGIC,
                cookie_mask=MAGIC_MASK,
                match=parser.OFPMatch(),
            )


def _deletion(protocol: Any, **fields: Any) -> Any:
    return parser.OFPFlowMod(protocol, out_port=ofproto.OFPP_ANY, out_group=ofproto.OFPG_ANY, **fields)


def _match(match: Match) -> Any:
    fields: dict[str, Any] = {}
    if match.in_port is not None:
        fields["in_port"] = match.in_port
    if match.source is not None or match.destination is not None:
        fields["eth_type"] = IPV4
    if match.source is not None:
        fields["ipv4_src"] = str(match.source)
    if match.destination is not None and match.destination.prefixlen == 32:
        fields["ipv4_dst"] = str(match.destination.network_address)
    elif match.destination is not None:
        fields["ipv4_dst"] = (str(match.destination.network_address), str(match.destination.netmask))
    return parser.OFPMatch(**fields)


def _instructions(rule: Rule) -> list[Any]:
    if not rule.outputs:
        return []
    actions: list[Any] = []
    if rule.dscp is not None:
        actions.append(parser.OFPActionSetField(ip_dscp=rule.dscp))
    if rule.queue is not None:
        actions.append(parser.OFPActionSetQueue(rule.queue))
    actions += [parser.OFPActionOutput(port) for port in rule.outputs]
    return [parser.OFPInstructionActions(ofproto.OFPIT_APPLY_ACTIONS, actions)]
