"""Roles of authenticated clients at an agent."""

from __future__ import annotations

from typing import Protocol

SENDER, NEIGHBOR = "sender", "neighbor"
"""A SENDER starts sessions and may do everything; a NEIGHBOR may only forward data of running sessions."""


class ClientRole(Protocol):
    """Clients that may connect as `role`: those whose certificates have all of `names`."""

    @property
    def role(self) -> str:
        """Return SENDER or NEIGHBOR."""

    def names(self) -> frozenset[tuple[str, str]]:
        """Return the names that a certificate must have: (kind, value), as `tls.certificate_names` returns them."""
