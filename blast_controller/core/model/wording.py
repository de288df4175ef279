"""How lists and moments read in the sentences that people get."""

from __future__ import annotations

from collections.abc import Iterable, Sized

MAX_NAMED = 20
"""How many names stand in one sentence."""


def listed(names: Iterable[str]) -> str:
    """Names with commas between; of very many the first ones."""
    every = list(names)
    more = len(every) - MAX_NAMED
    return ", ".join(every[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def are(things: Sized) -> str:
    """The verb that goes with so many things."""
    return "is" if len(things) == 1 else "are"


def moment(seconds: float) -> str:
    """How far off something is."""
    return "now" if seconds < 0.05 else f"in {duration(seconds)}"


def speed(rate: float) -> str:
    """A rate in bit/s with the unit that fits it."""
    for unit, name in ((1e9, "Gbit/s"), (1e6, "Mbit/s")):
        if rate >= unit:
            return f"{rate / unit:.4g} {name}"
    return f"{rate:.4g} bit/s"


def duration(seconds: float) -> str:
    """How long something takes."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
