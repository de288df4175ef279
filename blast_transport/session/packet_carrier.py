"""The carrier `packets` at the sender: to every receiver over its own connection, one copy each.

All blocks are owed to everybody from the start, so that there is nothing to do but to digest them.
"""

from __future__ import annotations

from blast_transport.session.reader import BlockReader
from blast_transport.session.sender_core import SenderCore
from blast_transport.wire.messages import PACKETS, Leg

_BLOCKS_PER_STEP = 32


class PacketCarrier:
    """Lets the connections do the work."""

    name = PACKETS

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
        self._reader.digest(core.layout.blocks, _BLOCKS_PER_STEP)
        core.tell_digests()
        if self._reader.last(core.digests):
            core.next_block = core.digests
            self._over = True
        return 0

    def leave(self, core: SenderCore) -> bool:
        """What is owed stays owed."""
        return False

    def drain(self, core: SenderCore) -> None:
        """The connections do the work."""

    def quit(self, reason: str) -> None:
        """Nothing is under way."""

    def close(self) -> None:
        """Nothing is held."""
