"""Transport `unicast` at the sender: one copy to every receiver over its own connection.

Every block becomes a repair for all receivers as soon as it is digested; no other action is necessary.
"""

from __future__ import annotations

from collections.abc import Iterable

from blast_transport.transports.choices import TransportChoice, Unicast
from blast_transport.transports.sending import SendingContext, SendingEvent, SendingTransport
from blast_transport.wire.messages import Phase

_BLOCKS_PER_STEP = 32
"""Blocks before other work is done, so that neither waits long."""
_IDLE_SECONDS = 0.5
"""Between looks while nothing is to be digested; an event ends the wait."""


class UnicastSender(SendingTransport):
    """Lets the connections do the work."""

    def __init__(self, phase: Phase, choice: Unicast, around: SendingContext) -> None:
        super().__init__(phase)
        self._reader = around.reader

    def follow(self, choice: TransportChoice) -> bool:
        """Return whether the choice is unicast, which has no variants."""
        return isinstance(choice, Unicast)

    def work(self, now: float) -> float:
        """Digest some blocks. Raises SourceChangedError, ForgottenError."""
        busy = self._reader.digest(_BLOCKS_PER_STEP)
        self.over = self._reader.last(self._reader.digested)
        return 0 if busy and not self.over else _IDLE_SECONDS

    def events(self) -> Iterable[SendingEvent]:
        """Return no events: the reader reports digests itself."""
        return ()
