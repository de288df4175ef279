"""The transport `optical` at the sender: blocks at the granted rate, while there is light."""

from __future__ import annotations

import math
from dataclasses import replace

from blast_transport.base.errors import WrongInputError
from blast_transport.datagrams.interface import open_sender_socket
from blast_transport.datagrams.sender import GroupSender
from blast_transport.transports.choices import OpticalChoice, OpticalPause, TransportChoice
from blast_transport.transports.sending import Granted, SendingContext
from blast_transport.wire.fields import to_parameters
from blast_transport.wire.groups import GroupParameters
from blast_transport.wire.messages import Phase


class OpticalSender(GroupSender):
    """Multicast transport until the end of its grant. Raises WrongInputError, LightPathError."""

    def __init__(self, phase: Phase, choice: OpticalChoice, around: SendingContext) -> None:
        if around.interface_address is None:
            raise WrongInputError(
                "the optical transport needs the address of this host's interface on the optical network; "
                "set interface_address"
            )
        sock = open_sender_socket(around.interface_address, choice.group, choice.port)
        parameters = GroupParameters(choice.group, choice.port, *sock.getsockname())
        super().__init__(replace(phase, parameters=to_parameters(parameters)), sock, around)
        self._follow_grant(choice)
        self._rate = choice.rate
        self._events.append(Granted(choice.rate))

    def _follow_grant(self, choice: OpticalChoice) -> None:
        self._grant, self.ends_at, self._queue_bytes = choice, choice.until, choice.window_bytes

    def follow(self, choice: TransportChoice) -> bool:
        """Follow an extension, another rate, or a pause of the same light tree."""
        if isinstance(choice, OpticalPause):
            self.ends_at = -math.inf
            self._retransmits.clear()
            return True
        if not isinstance(choice, OpticalChoice) or (choice.group, choice.port) != (
            self._grant.group,
            self._grant.port,
        ):
            return False
        if choice.rate != self._grant.rate:
            self._events.append(Granted(choice.rate))
        self._follow_grant(choice)
        return True
