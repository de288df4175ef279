"""Properties of the transports, by their names on the wire."""

from __future__ import annotations

from dataclasses import dataclass

OPTICAL, MULTICAST, PIPELINE = "optical", "multicast", "pipeline"
TREES, UNICAST = "trees", "unicast"


@dataclass(frozen=True, slots=True)
class Traits:
    """Properties of a transport that a session depends on.

    `choice`, `sender` and `receiver` are its classes, as "module:name"; without `receiver` it delivers as repairs do.
    `windowed`: it stays within a window ahead of the credits of the receivers that keep up, and preserves order, so
    that a gap is a loss. `shares_network`: its network carries other traffic, and may lose all datagrams for a while;
    then no receiver is slow. `repairs_itself`: it repairs its own losses; receivers request nothing before the data has
    ended. `shared_repair`: its repairs reach all receivers. `apart`: it serves each receiver separately, at the
    receiver's pace, with its missing blocks.
    """

    choice: str = ""
    sender: str = ""
    receiver: str = ""
    windowed: bool = False
    shares_network: bool = False
    repairs_itself: bool = False
    shared_repair: bool = False
    apart: bool = False


_CHOICES, _TRANSPORTS = "blast_transport.transports.choices", "blast_transport.transports"


def _classes(name: str, choice: str) -> tuple[str, str, str]:
    kind = name.title()
    return (
        f"{_CHOICES}:{choice}",
        f"{_TRANSPORTS}.{name}.sender:{kind}Sender",
        f"{_TRANSPORTS}.{name}.receiver:{kind}Receiver",
    )


TRANSPORTS: dict[str, Traits] = {
    OPTICAL: Traits(*_classes(OPTICAL, "OpticalChoice"), windowed=True, shared_repair=True),
    MULTICAST: Traits(*_classes(MULTICAST, "MulticastChoice"), windowed=True, shares_network=True, shared_repair=True),
    PIPELINE: Traits(*_classes(PIPELINE, "Chain"), repairs_itself=True),
    TREES: Traits(*_classes(TREES, "Trees"), repairs_itself=True),
    UNICAST: Traits(*_classes(UNICAST, "Unicast")[:2], apart=True),
}
"""All transports by name. A new one needs a folder in `transports` and a line here."""


def transport_named(text: str) -> str:
    """Return the transport that a user named; `packets` is the former name of `unicast`."""
    return UNICAST if text == "packets" else text
