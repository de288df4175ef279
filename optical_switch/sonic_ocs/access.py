"""Access to one SONiC switch. A session loads its library when it is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from optical_switch.sonic_ocs.settings import GnmiSettings, Login, RedisSettings

if TYPE_CHECKING:
    from optical_switch.sonic_ocs.gnmi_session import GnmiSession
    from optical_switch.sonic_ocs.redis_session import RedisSession


@dataclass(frozen=True, slots=True)
class GnmiAccess(GnmiSettings):
    """Access by gNMI."""

    @property
    def secrets(self) -> frozenset[str]:
        """The texts that must never be logged."""
        return _secrets(self.login)

    def new_session(self) -> GnmiSession:
        """Return a session that is not open yet."""
        from optical_switch.sonic_ocs.gnmi_session import GnmiSession

        return GnmiSession(self)


@dataclass(frozen=True, slots=True)
class RedisAccess(RedisSettings):
    """Access by the databases."""

    @property
    def secrets(self) -> frozenset[str]:
        """The texts that must never be logged."""
        return _secrets(self.login)

    def new_session(self) -> RedisSession:
        """Return a session that is not open yet."""
        from optical_switch.sonic_ocs.redis_session import RedisSession

        return RedisSession(self)


def _secrets(login: Login) -> frozenset[str]:
    return frozenset(filter(None, [login.password]))
