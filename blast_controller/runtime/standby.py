"""The knowledge of a standby about the leader."""

from __future__ import annotations

from typing import Protocol


class Standby(Protocol):
    """May be asked in any thread, and answers at once."""

    def leader(self) -> str | None:
        """Return the leader's address; None if there is no leader."""

    def age(self) -> float | None:
        """Return the maximum age of the displayed state in seconds; None before the first read."""


def standby_message(standby: Standby | None) -> str | None:
    """Return a standby's message to clients; None on the leader."""
    if standby is None:
        return None
    return f"This controller is a standby; the leader is {standby.leader() or 'unknown'}."
