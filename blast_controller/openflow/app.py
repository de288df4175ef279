"""The Ryu application, the same on os-ken and on ryu: it hands over what switches say, and does nothing else.

A handler must not wait, because the framework's queues are short; so each makes one input for `steps` and returns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from blast_controller.openflow.flow_stats import MalformedEntry, decode_entry
from blast_controller.openflow.framework import (
    DEAD_DISPATCHER,
    MAIN_DISPATCHER,
    Application,
    EventBase,
    Fatal,
    handles,
    ofp_event,
    ofproto_v1_3,
)
from blast_controller.openflow.messages import error_name, is_demotion, is_fenced, port_state
from blast_controller.openflow.probe import probe_payload
from blast_controller.openflow.vocabulary import (
    BarrierAnswered,
    Connected,
    Demoted,
    Input,
    Lost,
    MalformedMessage,
    PortReported,
    ProbeArrived,
    Refusal,
    RoleAnswered,
    RulesCounted,
    RulesRead,
)


class ForwardingApplication(Application):
    """Reports connections, answers, errors, ports and probe frames to `deliver`."""

    def __init__(self, deliver: Callable[[Input], None], fatal: Fatal) -> None:
        super().__init__(fatal)
        self._deliver = deliver

    @handles(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def state_changed(self, event: EventBase) -> None:
        """A switch finished its handshake, or its connection is dead."""
        connection = event.datapath
        if event.state == MAIN_DISPATCHER:
            ports = tuple(port_state(description) for description in list(connection.ports.values()))
            self._deliver(Connected(connection, connection.id, ports, connection.names))
        else:
            self._deliver(Lost(connection, "its connection was closed"))

    @handles(ofp_event.EventOFPRoleReply, [MAIN_DISPATCHER])
    def role_replied(self, event: EventBase) -> None:
        """The switch says which role we have."""
        message = event.msg
        master = message.role == ofproto_v1_3.OFPCR_ROLE_MASTER
        self._deliver(RoleAnswered(message.datapath, message.xid, master))

    @handles(ofp_event.EventOFPFlowStatsReply, [MAIN_DISPATCHER])
    def rules_told(self, event: EventBase) -> None:
        """One part of the rules with our cookie."""
        message = event.msg
        try:
            rules = tuple(decode_entry(entry.data) for entry in message.body)
        except MalformedEntry as error:
            self._deliver(MalformedMessage(message.datapath, str(error)))
            return
        last = not message.flags & ofproto_v1_3.OFPMPF_REPLY_MORE
        self._deliver(RulesRead(message.datapath, message.xid, rules, last))

    @handles(ofp_event.EventOFPAggregateStatsReply, [MAIN_DISPATCHER])
    def rules_counted(self, event: EventBase) -> None:
        """How many rules there are."""
        self._deliver(RulesCounted(event.msg.datapath, event.msg.xid, event.msg.body.flow_count))

    @handles(ofp_event.EventOFPBarrierReply, [MAIN_DISPATCHER])
    def barrier_replied(self, event: EventBase) -> None:
        """All that was sent before the barrier request is done."""
        self._deliver(BarrierAnswered(event.msg.datapath, event.msg.xid))

    @handles(ofp_event.EventOFPErrorMsg, [MAIN_DISPATCHER])
    def refused(self, event: EventBase) -> None:
        """A switch refused a message; the error carries that message's transaction id."""
        message = event.msg
        self._deliver(Refusal(message.datapath, message.xid, error_name(message), is_fenced(message)))

    @handles(ofp_event.EventOFPPortStatus, [MAIN_DISPATCHER])
    def port_reported(self, event: EventBase) -> None:
        """A port came, went or changed."""
        message = event.msg
        state = port_state(message.desc)
        if message.reason == ofproto_v1_3.OFPPR_DELETE:
            state = replace(state, up=False, reason="the ToR has no such port any more")
        self._deliver(PortReported(message.datapath, state))

    @handles(ofp_event.EventOFPPacketIn, [MAIN_DISPATCHER])
    def frame_arrived(self, event: EventBase) -> None:
        """A frame that a rule hands to the controller; only probes are for us."""
        message = event.msg
        payload = probe_payload(bytes(message.data))
        if payload is not None and "in_port" in message.match:
            self._deliver(ProbeArrived(message.datapath, message.match["in_port"], payload))

    @handles(ofp_event.EventOFPExperimenter, [MAIN_DISPATCHER])
    def extended(self, event: EventBase) -> None:
        """An extension's message; only a lost mastership is for us."""
        if is_demotion(event.msg):
            self._deliver(Demoted(event.msg.datapath))
