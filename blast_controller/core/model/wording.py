"""Formatting of lists and times in messages."""

from __future__ import annotations

from collections.abc import Iterable, Sized

MAX_NAMED = 20
"""Maximum number of names in one message."""


def listed(names: Iterable[str]) -> str:
    """Return the names with commas between; of very many the first ones."""
    every = list(names)
    more = len(every) - MAX_NAMED
    return ", ".join(every[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def are(things: Sized) -> str:
    """Return the verb for a singular or plural."""
    return "is" if len(things) == 1 else "are"


def moment(seconds: float) -> str:
    """Format a time from now."""
    return "now" if seconds < 0.05 else f"in {duration(seconds)}"


def speed(rate: float) -> str:
    """Return a rate in bit/s with the unit that fits it."""
    for unit, name in ((1e9, "Gbit/s"), (1e6, "Mbit/s")):
        if rate >= unit:
            return f"{rate / unit:.4g} {name}"
    return f"{rate:.4g} bit/s"


def duration(seconds: float) -> str:
    """Format a duration."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
