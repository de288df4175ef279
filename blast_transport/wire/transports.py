"""Properties of transports, by their names on the wire: code that depends on a transport depends on these."""

from __future__ import annotations

from dataclasses import dataclass

OPTICAL, PIPELINE, TREES, UNICAST = "optical", "pipeline", "trees", "unicast"


@dataclass(frozen=True, slots=True)
class Traits:
    """What a session has to know of a transport.

    `windowed`: it goes no further than a window ahead of the credits of those that keep up, and nothing in it
    overtakes, so that a gap is a loss. `repairs_itself`: what it loses it brings, and is not to be asked for until the
    data has ended. `shared_repair`: what it repairs reaches all. `apart`: each receiver is served by itself, at its own
    pace, with what it misses.
    """

    windowed: bool = False
    repairs_itself: bool = False
    shared_repair: bool = False
    apart: bool = False


TRANSPORTS: dict[str, Traits] = {
    OPTICAL: Traits(windowed=True, shared_repair=True),
    PIPELINE: Traits(repairs_itself=True),
    TREES: Traits(repairs_itself=True),
    UNICAST: Traits(apart=True),
}
"""All that there are, by name."""


def transport_named(text: str) -> str:
    """A transport as people write it: `packets` is what `unicast` was called."""
    return UNICAST if text == "packets" else text
