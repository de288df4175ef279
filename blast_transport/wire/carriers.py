"""What carriers do, by the names that they have on the wire: everything that depends on a carrier depends on these."""

from __future__ import annotations

from dataclasses import dataclass

OPTICAL, PIPELINE, UNICAST = "optical", "pipeline", "unicast"


@dataclass(frozen=True, slots=True)
class Traits:
    """What a session has to know of a carrier.

    `windowed`: it goes no further than a window ahead of the credits of those that keep up. `ordered`: nothing
    overtakes, so that a gap is a loss. `repairs_itself`: what it loses it brings, and is not to be asked for until the
    data has ended. `shared_repair`: what it repairs reaches all. `needs_grant`: somebody has to permit it, and may
    withdraw that. `forwards`: receivers pass on what they get. `apart`: each receiver is served by itself, at its own
    pace, with what it misses.
    """

    windowed: bool = False
    ordered: bool = False
    repairs_itself: bool = False
    shared_repair: bool = False
    needs_grant: bool = False
    forwards: bool = False
    apart: bool = False


CARRIERS: dict[str, Traits] = {
    OPTICAL: Traits(windowed=True, ordered=True, shared_repair=True, needs_grant=True),
    PIPELINE: Traits(ordered=True, repairs_itself=True, forwards=True),
    UNICAST: Traits(ordered=True, apart=True),
}
"""All that there are, by name."""


def carrier_named(text: str) -> str:
    """A carrier as people write it: `packets` is what `unicast` was called."""
    return UNICAST if text == "packets" else text
