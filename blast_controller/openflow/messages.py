"""Translation between the driver's vocabulary and OpenFlow 1.3 messages (OpenFlow 1.3.5, appendix A)."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from blast_controller.openflow.flow_mods import flow_mod
from blast_controller.openflow.framework import HEADER, Datapath, MsgBase, OFPPort
from blast_controller.openflow.framework import ofproto_v1_3 as ofproto
from blast_controller.openflow.framework import ofproto_v1_3_parser as parser
from blast_controller.openflow.probe import probe_frame
from blast_controller.openflow.rules import (
    MAGIC,
    MAGIC_MASK,
    AddRule,
    DeleteRule,
    DeleteStray,
)
from blast_controller.openflow.vocabulary import (
    CountRules,
    Fence,
    Message,
    Numbered,
    PortState,
    ReadOurRules,
    RequestMaster,
    RequestSlave,
    TransmitProbe,
)

WHOLE_COOKIE = 0xFFFF_FFFF_FFFF_FFFF
ONF_EXPERIMENTER, ROLE_STATUS = 0x4F4E4600, 1911
"""ONF extension 191 to OpenFlow 1.3: notification of a controller that its role has changed."""


def encode(protocol: Datapath, messages: Iterable[Numbered]) -> bytes:
    """Encode messages. `protocol` is a connection (or a ProtocolDesc) for OpenFlow 1.3."""
    return b"".join([_encoded(protocol, xid, message) for xid, message in messages])


def port_state(description: OFPPort) -> PortState:
    """Return the state in an ofp_port (section A.2.1)."""
    if description.config & ofproto.OFPPC_PORT_DOWN:
        return PortState(description.port_no, False, "it is switched off")
    if description.state & ofproto.OFPPS_LINK_DOWN:
        return PortState(description.port_no, False, "it has no link")
    return PortState(description.port_no, True)


def is_fenced(error: MsgBase) -> bool:
    """Return true if an OFPErrorMsg reports that another controller is the master."""
    return (error.type, getattr(error, "code", None)) in {
        (ofproto.OFPET_ROLE_REQUEST_FAILED, ofproto.OFPRRFC_STALE),
        (ofproto.OFPET_BAD_REQUEST, ofproto.OFPBRC_IS_SLAVE),
    }


def is_demotion(message: MsgBase) -> bool:
    """Return true if an OFPExperimenter reports the loss of the master role."""
    if (message.experimenter, message.exp_type) != (ONF_EXPERIMENTER, ROLE_STATUS) or len(message.data) < 4:
        return False
    (role,) = struct.unpack_from("!I", message.data)
    return bool(role == ofproto.OFPCR_ROLE_SLAVE)


def error_name(error: MsgBase) -> str:
    """Return the name of an OFPErrorMsg's error, e.g. "OFPET_BAD_ACTION, OFPBAC_BAD_OUT_PORT"."""
    if error.type == ofproto.OFPET_EXPERIMENTER:
        return f"OFPET_EXPERIMENTER, experimenter {error.experimenter:#x}, type {error.exp_type}"
    names = (ofproto.ofp_error_type_to_str(error.type), ofproto.ofp_error_code_to_str(error.type, error.code))
    return ", ".join(name.partition("(")[0] for name in names)


def _encoded(protocol: Datapath, xid: int, message: Message) -> bytes:
    match message:
        case AddRule() | DeleteRule() | DeleteStray():
            return flow_mod(xid, message)
        case Fence():
            return HEADER.pack(ofproto.OFP_VERSION, ofproto.OFPT_BARRIER_REQUEST, HEADER.size, xid)
        case _:
            return _serialized(_message(protocol, message), xid)


def _serialized(message: MsgBase, xid: int) -> bytes:
    message.set_xid(xid)
    message.serialize()
    return bytes(message.buf)


def _message(
    protocol: Datapath, message: RequestMaster | RequestSlave | ReadOurRules | CountRules | TransmitProbe
) -> MsgBase:
    match message:
        case RequestMaster(generation):
            return parser.OFPRoleRequest(protocol, ofproto.OFPCR_ROLE_MASTER, generation)
        case RequestSlave(generation):
            return parser.OFPRoleRequest(protocol, ofproto.OFPCR_ROLE_SLAVE, generation)
        case ReadOurRules():
            return parser.OFPFlowStatsRequest(protocol, cookie=MAGIC, cookie_mask=MAGIC_MASK)
        case CountRules():
            everything = (ofproto.OFPTT_ALL, ofproto.OFPP_ANY, ofproto.OFPG_ANY, 0, 0, parser.OFPMatch())
            return parser.OFPAggregateStatsRequest(protocol, 0, *everything)
        case TransmitProbe(port, payload):
            return parser.OFPPacketOut(
                protocol,
                buffer_id=ofproto.OFP_NO_BUFFER,
                in_port=ofproto.OFPP_CONTROLLER,
                actions=[parser.OFPActionOutput(port)],
                data=probe_frame(payload),
            )
