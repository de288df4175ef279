"""What carries data on one leg of a session."""

from __future__ import annotations

from typing import Protocol

from blast_transport.session.sender_core import SenderCore
from blast_transport.wire.messages import Leg

DIGESTS_TOLD = 512
"""After so many blocks their digests are told, where nobody needs them earlier: each message wakes every receiver."""


class Carrier(Protocol):
    """One way of bringing blocks to the receivers. `name` is the one on the wire."""

    name: str

    @property
    def over(self) -> bool:
        """Every block has left by it, or by one before it."""

    def leg(self, name: str) -> Leg | None:
        """What this receiver is told; None: it gets nothing by this carrier."""

    def step(self, core: SenderCore, now: float) -> float:
        """Do what is due while the session is `sending`; seconds until there is more to do."""

    def leave(self, core: SenderCore) -> bool:
        """Another carrier brings what comes next; True: this one still brings what is before, see `drain`."""

    def drain(self, core: SenderCore) -> None:
        """Do what is due after `leave`, until `over`."""

    def quit(self, reason: str) -> None:
        """Somebody wants the transfer to end."""

    def close(self) -> None:
        """Give back everything."""
