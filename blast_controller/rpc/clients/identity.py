"""Roles and identities."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

DEFAULT_TENANT = "default"


class Role(IntEnum):
    """The role of a client; each role includes the permissions of those below it."""

    VIEWER = 1
    """Look."""
    USER = 2
    """Ask for multicasts, and change and end its own tenant's."""
    OPERATOR = 3
    """Do all that to every tenant's, and handle the hardware."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A client that has proved who it is."""

    tenant: str
    role: Role

    def reaches(self, tenant: str) -> bool:
        """Return true if the client may see (and, if its role allows, change) objects of `tenant`."""
        return self.role is Role.OPERATOR or tenant == self.tenant

    @property
    def only_tenant(self) -> str | None:
        """Return the tenant to which everything that it sees is limited; None: it sees all."""
        return None if self.role is Role.OPERATOR else self.tenant

    def __str__(self) -> str:
        return f"{self.role.name.lower()} of tenant {self.tenant}"
