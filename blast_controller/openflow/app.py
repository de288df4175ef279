"""The Ryu application, the same on os-ken and on ryu: it hands over what switches say, and does nothing else.

A handler must not wait, because the framework's queues are short; so each makes one input for `steps` and returns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from blast_controller.openflow.framework import (
    DEAD_DISPATCHER,
    MAIN_DISPATCHER,
    Application,
    Fatal,
    handles,
    ofp_event,
)
from blast_controller.openflow.messages import error_name
from blast_controller.openflow.steps import Barrier, Connected, Input, Lost, Refusal


class ForwardingApplication(Application):
    """Reports connections, barrier replies and errors to `deliver`."""

    def __init__(self, deliver: Callable[[Input], None], fatal: Fatal) -> None:
        super().__init__(fatal)
        self._deliver = deliver

    @handles(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def state_changed(self, event: Any) -> None:
        """A switch finished its handshake, or its connection is dead."""
        connection = event.datapath
        if event.state == MAIN_DISPATCHER:
            self._deliver(Connected(connection, connection.id))
        else:
            self._deliver(Lost(connection, "its connection was closed"))

    @handles(ofp_event.EventOFPBarrierReply, [MAIN_DISPATCHER])
    def barrier_replied(self, event: Any) -> None:
        """All that was sent before the barrier request is done."""
        self._deliver(Barrier(event.msg.datapath, event.msg.xid))

    @handles(ofp_event.EventOFPErrorMsg, [MAIN_DISPATCHER])
    def refused(self, event: Any) -> None:
        """A switch refused a message; the error carries that message's transaction id."""
        self._deliver(Refusal(event.msg.datapath, event.msg.xid, error_name(event.msg)))
