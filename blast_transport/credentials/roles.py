"""What somebody who has proved who it is may do with an agent."""

from __future__ import annotations

from typing import Protocol

SENDER, NEIGHBOR = "sender", "neighbor"
"""Who starts sessions and may do all; who may only hand on the data of a session that runs already."""


class Client(Protocol):
    """Somebody who may connect, as `role`: certificates that say all of `names` are its own."""

    @property
    def role(self) -> str:
        """SENDER or NEIGHBOR."""

    def names(self) -> frozenset[tuple[str, str]]:
        """What a certificate must say: (kind, value), as of `tls.certificate_names`."""
