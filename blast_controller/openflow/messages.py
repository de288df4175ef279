"""What is said to a ToR as OpenFlow 1.3 messages, and what it says as words (OpenFlow 1.3.5, appendix A)."""

from __future__ import annotations

import struct
from typing import Any

from blast_controller.openflow.flow_stats import IPV4
from blast_controller.openflow.framework import ofproto_v1_3 as ofproto
from blast_controller.openflow.framework import ofproto_v1_3_parser as parser
from blast_controller.openflow.probe import probe_frame
from blast_controller.openflow.rules import (
    CONTROLLER,
    MAGIC,
    MAGIC_MASK,
    OWNER_MASK,
    AddRule,
    DeleteRule,
    DeleteStray,
    Match,
    Rule,
    Stray,
)
from blast_controller.openflow.vocabulary import (
    Claim,
    CountRules,
    Fence,
    Message,
    Numbered,
    PortState,
    ReadOurRules,
    SendProbe,
)

WHOLE_COOKIE = 0xFFFF_FFFF_FFFF_FFFF
ONF_EXPERIMENTER, ROLE_STATUS = 0x4F4E4600, 1911
"""ONF extension 191 to OpenFlow 1.3: a switch tells a controller that its role has changed."""


def encode(protocol: Any, messages: tuple[Numbered, ...]) -> bytes:
    """Their bytes. `protocol` is a connection (or a ProtocolDesc) that knows 1.3."""
    return b"".join(_encoded(protocol, xid, message) for xid, message in messages)


def port_state(description: Any) -> PortState:
    """What an ofp_port says (section A.2.1)."""
    if description.config & ofproto.OFPPC_PORT_DOWN:
        return PortState(description.port_no, False, "it is switched off")
    if description.state & ofproto.OFPPS_LINK_DOWN:
        return PortState(description.port_no, False, "it has no link")
    return PortState(description.port_no, True)


def is_fenced(error: Any) -> bool:
    """Whether an OFPErrorMsg says that another controller is the master."""
    return (error.type, getattr(error, "code", None)) in {
        (ofproto.OFPET_ROLE_REQUEST_FAILED, ofproto.OFPRRFC_STALE),
        (ofproto.OFPET_BAD_REQUEST, ofproto.OFPBRC_IS_SLAVE),
    }


def is_demotion(message: Any) -> bool:
    """Whether an OFPExperimenter says that we are no longer the master."""
    if (message.experimenter, message.exp_type) != (ONF_EXPERIMENTER, ROLE_STATUS) or len(message.data) < 4:
        return False
    (role,) = struct.unpack_from("!I", message.data)
    return bool(role == ofproto.OFPCR_ROLE_SLAVE)


def error_name(error: Any) -> str:
    """What an OFPErrorMsg complains about, e.g. "OFPET_BAD_ACTION, OFPBAC_BAD_OUT_PORT"."""
    if error.type == ofproto.OFPET_EXPERIMENTER:
        return f"OFPET_EXPERIMENTER, experimenter {error.experimenter:#x}, type {error.exp_type}"
    names = (ofproto.ofp_error_type_to_str(error.type), ofproto.ofp_error_code_to_str(error.type, error.code))
    return ", ".join(name.partition("(")[0] for name in names)


def _encoded(protocol: Any, xid: int, message: Message) -> bytes:
    if isinstance(message, DeleteStray):
        return _stray_deletion(xid, message.stray)
    return _serialized(_message(protocol, message), xid)


def _serialized(message: Any, xid: int) -> bytes:
    message.set_xid(xid)
    message.serialize()
    return bytes(message.buf)


def _message(protocol: Any, message: Message) -> Any:
    match message:
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
            return _deletion(protocol, rule)
        case Fence():
            return parser.OFPBarrierRequest(protocol)
        case Claim(generation):
            return parser.OFPRoleRequest(protocol, ofproto.OFPCR_ROLE_MASTER, generation)
        case ReadOurRules():
            return parser.OFPFlowStatsRequest(protocol, cookie=MAGIC, cookie_mask=MAGIC_MASK)
        case CountRules():
            everything = (ofproto.OFPTT_ALL, ofproto.OFPP_ANY, ofproto.OFPG_ANY, 0, 0, parser.OFPMatch())
            return parser.OFPAggregateStatsRequest(protocol, 0, *everything)
        case SendProbe(port, payload):
            return parser.OFPPacketOut(
                protocol,
                buffer_id=ofproto.OFP_NO_BUFFER,
                in_port=ofproto.OFPP_CONTROLLER,
                actions=[parser.OFPActionOutput(port)],
                data=probe_frame(payload),
            )


def _deletion(protocol: Any, rule: Rule) -> Any:
    return parser.OFPFlowMod(
        protocol,
        command=ofproto.OFPFC_DELETE_STRICT,
        table_id=rule.table,
        priority=rule.priority,
        cookie=rule.cookie,
        cookie_mask=OWNER_MASK,
        match=_match(rule.match),
        out_port=ofproto.OFPP_ANY,
        out_group=ofproto.OFPG_ANY,
    )


def _stray_deletion(xid: int, stray: Stray) -> bytes:
    """By hand, because its match goes back as it came, whatever it may hold."""
    body = struct.pack(
        ofproto.OFP_FLOW_MOD_PACK_STR0,
        stray.cookie,
        WHOLE_COOKIE,
        stray.table,
        ofproto.OFPFC_DELETE_STRICT,
        0,
        0,
        stray.priority,
        ofproto.OFP_NO_BUFFER,
        ofproto.OFPP_ANY,
        ofproto.OFPG_ANY,
        0,
    )
    body += stray.match + bytes(-len(stray.match) % 8)
    return struct.pack("!BBHI", ofproto.OFP_VERSION, ofproto.OFPT_FLOW_MOD, 8 + len(body), xid) + body


def _match(match: Match) -> Any:
    fields: dict[str, Any] = {}
    if match.in_port is not None:
        fields["in_port"] = match.in_port
    if match.source is not None or match.destination is not None:
        fields["eth_type"] = IPV4
    elif match.ethertype is not None:
        fields["eth_type"] = match.ethertype
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
    actions += [_output(port) for port in rule.outputs]
    return [parser.OFPInstructionActions(ofproto.OFPIT_APPLY_ACTIONS, actions)]


def _output(port: int) -> Any:
    # To the controller whole, and not kept in a buffer of the switch.
    return parser.OFPActionOutput(port, ofproto.OFPCML_NO_BUFFER if port == CONTROLLER else ofproto.OFPCML_MAX)
