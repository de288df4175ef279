"""The transport `optical` at a receiver: it joins the group on its optical interface."""

from __future__ import annotations

from blast_transport.base.errors import WrongInputError
from blast_transport.datagrams.receiver import GroupReceiver
from blast_transport.transports.receiving import ReceivingContext
from blast_transport.wire.groups import group_parameters
from blast_transport.wire.messages import Phase

_GATHERING_SECONDS = 0.002
"""Time for which data may collect before it is read: the sender must not wait."""


class OpticalReceiver(GroupReceiver):
    """Receiver of a group on the light path. Raises RemoteProtocolError, WrongInputError, OSError."""

    def __init__(self, phase: Phase, around: ReceivingContext) -> None:
        if around.interface_address is None:
            raise WrongInputError("this host has no interface on a light path")
        parameters = group_parameters(phase)
        sock = around.open_group(around.interface_address, parameters.group, parameters.port)
        super().__init__(phase, sock, (parameters.source, parameters.source_port), around, _GATHERING_SECONDS)
