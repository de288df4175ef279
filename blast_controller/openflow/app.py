"""The Ryu application, for os-ken and ryu: it passes messages of switches on and does nothing else.

A handler must not block, because the framework's queues are short; so each makes one input for `steps` and returns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from blast_controller.openflow.flow_stats import MalformedEntryError, decode_entry
from blast_controller.openflow.framework import (
    DEAD_DISPATCHER,
    MAIN_DISPATCHER,
    Datapath,
    EventBase,
    Fatal,
    RyuApplication,
    handles,
    ofp_event,
    ofproto_v1_3,
)
from blast_controller.openflow.messages import error_name, is_demotion, is_fenced, port_state
from blast_controller.openflow.probe import probe_payload
from blast_controller.openflow.vocabulary import (
    BarrierAnswered,
    Connected,
    ErrorReceived,
    Input,
    MalformedMessage,
    MasterLost,
    PortReported,
    ProbeArrived,
    RoleAnswered,
    RulesCounted,
    RulesRead,
    SessionLost,
)


class ForwardingApplication(RyuApplication):
    """Reports connections, answers, errors, ports and probe frames to `deliver`."""

    def __init__(self, deliver: Callable[[Input], None], fatal: Fatal) -> None:
        super().__init__(fatal)
        self._deliver = deliver

    @handles(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def state_changed(self, event: EventBase) -> None:
        """Handle a finished handshake, or the end of a connection."""
        connection = event.datapath
        if event.state == MAIN_DISPATCHER:
            ports = tuple(port_state(description) for description in list(connection.ports.values()))
            self._deliver(Connected(connection, connection.id, ports, connection.names))
        else:
            self._deliver(SessionLost(connection, "its connection was closed"))

    @handles(ofp_event.EventOFPRoleReply, [MAIN_DISPATCHER])
    def role_replied(self, event: EventBase) -> None:
        """Handle a role reply."""
        message = event.msg
        master = message.role == ofproto_v1_3.OFPCR_ROLE_MASTER
        self._deliver(RoleAnswered(message.datapath, message.xid, master))

    @handles(ofp_event.EventOFPFlowStatsReply, [MAIN_DISPATCHER])
    def rules_reported(self, event: EventBase) -> None:
        """Handle one part of the rules with Blast's cookie."""
        message = event.msg
        try:
            rules = tuple(decode_entry(entry.data) for entry in message.body)
        except MalformedEntryError as error:
            self._deliver(MalformedMessage(message.datapath, str(error)))
            return
        last = not message.flags & ofproto_v1_3.OFPMPF_REPLY_MORE
        self._deliver(RulesRead(message.datapath, message.xid, rules, last))

    @handles(ofp_event.EventOFPAggregateStatsReply, [MAIN_DISPATCHER])
    def rules_counted(self, event: EventBase) -> None:
        """Handle a reply with the number of rules."""
        self._deliver(RulesCounted(event.msg.datapath, event.msg.xid, event.msg.body.flow_count))

    def barrier_replied(self, connection: Datapath, xid: int) -> None:
        """Handle a barrier reply: all earlier messages are done."""
        self._deliver(BarrierAnswered(connection, xid))

    @handles(ofp_event.EventOFPErrorMsg, [MAIN_DISPATCHER])
    def refused(self, event: EventBase) -> None:
        """Handle a refusal; the error has the transaction id of the refused message."""
        message = event.msg
        self._deliver(ErrorReceived(message.datapath, message.xid, error_name(message), is_fenced(message)))

    @handles(ofp_event.EventOFPPortStatus, [MAIN_DISPATCHER])
    def port_reported(self, event: EventBase) -> None:
        """Handle an added, removed or changed port."""
        message = event.msg
        state = port_state(message.desc)
        if message.reason == ofproto_v1_3.OFPPR_DELETE:
            state = replace(state, up=False, reason="the ToR no longer has this port")
        self._deliver(PortReported(message.datapath, state))

    @handles(ofp_event.EventOFPPacketIn, [MAIN_DISPATCHER])
    def frame_arrived(self, event: EventBase) -> None:
        """Handle a frame that a rule sent to the controller; only probes matter."""
        message = event.msg
        payload = probe_payload(bytes(message.data))
        if payload is not None and "in_port" in message.match:
            self._deliver(ProbeArrived(message.datapath, message.match["in_port"], payload))

    @handles(ofp_event.EventOFPExperimenter, [MAIN_DISPATCHER])
    def extended(self, event: EventBase) -> None:
        """Handle an extension's message; only the loss of the master role matters."""
        if is_demotion(event.msg):
            self._deliver(MasterLost(event.msg.datapath))
