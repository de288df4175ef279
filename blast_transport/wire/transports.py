"""Properties of the transports, by their names on the wire."""

from __future__ import annotations

from dataclasses import dataclass

OPTICAL, PIPELINE, TREES, UNICAST = "optical", "pipeline", "trees", "unicast"


@dataclass(frozen=True, slots=True)
class Traits:
    """Properties of a transport that a session depends on.

    `windowed`: it stays within a window ahead of the credits of the receivers that keep up, and preserves order, so
    that a gap is a loss. `repairs_itself`: it repairs its own losses; receivers request nothing before the data has
    ended. `shared_repair`: its repairs reach all receivers. `apart`: it serves each receiver separately, at the
    receiver's pace, with its missing blocks.
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
"""All transports by name."""


def transport_named(text: str) -> str:
    """Return the transport that a user named; `packets` is the former name of `unicast`."""
    return UNICAST if text == "packets" else text
