"""The transport `unicast` at the sender: to every receiver over its own connection, one copy each.

A block is owed to everybody as soon as it is digested, so that there is nothing else to do.
"""

from __future__ import annotations

from collections.abc import Iterable

from blast_transport.transports.choices import TransportChoice, Unicast
from blast_transport.transports.sending import SendingContext, SendingEvent, SendingTransport
from blast_transport.wire.messages import Phase

_BLOCKS_PER_TURN = 32
_IDLE_SECONDS = 0.5


class UnicastSender(SendingTransport):
    """Lets the connections do the work."""

    def __init__(self, phase: Phase, choice: Unicast, around: SendingContext) -> None:
        super().__init__(phase)
        self._reader = around.reader

    def follow(self, choice: TransportChoice) -> bool:
        """There is only one such way."""
        return isinstance(choice, Unicast)

    def work(self, now: float) -> float:
        """Digest some blocks. Raises SourceChangedError, ForgottenError."""
        busy = self._reader.digest(_BLOCKS_PER_TURN)
        self.over = self._reader.last(self._reader.digested)
        return 0 if busy and not self.over else _IDLE_SECONDS

    def events(self) -> Iterable[SendingEvent]:
        """The reader knows what is digested."""
        return ()
