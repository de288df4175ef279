"""What a controller knows that stands by while another decides."""

from __future__ import annotations

from typing import Protocol


class Standby(Protocol):
    """May be asked in any thread, and answers at once."""

    def leader(self) -> str | None:
        """Where the controller that decides is asked; None while nobody does."""

    def age(self) -> float | None:
        """How many seconds ago, at most, what is shown here was so; None before the first look."""


def said_of(standby: Standby | None) -> str | None:
    """That a controller stands by, as people are told; None of one that does not."""
    if standby is None:
        return None
    return f"This controller stands by; {standby.leader() or 'nobody'} decides."
