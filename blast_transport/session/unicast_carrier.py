"""The carrier `unicast` at the sender: to every receiver over its own connection, one copy each.

A block is owed to everybody as soon as it is digested, so that there is nothing else to do.
"""

from __future__ import annotations

from blast_transport.session.reader import BlockReader
from blast_transport.session.sender_core import SenderCore
from blast_transport.wire.carriers import UNICAST
from blast_transport.wire.messages import Leg

_BLOCKS_PER_STEP = 32
_IDLE_SECONDS = 0.5


class UnicastCarrier:
    """Lets the connections do the work."""

    name = UNICAST

    def __init__(self, leg: Leg, reader: BlockReader) -> None:
        self._leg, self._reader = leg, reader
        self._over = False

    @property
    def over(self) -> bool:
        """All blocks are digested, and owed to whoever misses them."""
        return self._over

    def leg(self, name: str) -> Leg | None:
        """Everybody hears the same."""
        return self._leg

    def step(self, core: SenderCore, now: float) -> float:
        """Digest some blocks. Raises SourceChangedError."""
        busy = self._reader.digest(core.layout.blocks, _BLOCKS_PER_STEP)
        core.tell_digests()
        core.owe(core.digests)
        self._over = self._reader.last(core.digests)
        return 0 if busy and not self._over else _IDLE_SECONDS

    def leave(self, core: SenderCore) -> bool:
        """What is owed stays owed."""
        return False

    def drain(self, core: SenderCore) -> None:
        """The connections do the work."""

    def quit(self, reason: str) -> None:
        """Nothing is under way."""

    def close(self) -> None:
        """Nothing is held."""
