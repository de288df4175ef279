"""Settings of an emulated switch with NETCONF: users, announced features, and switching times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from optical_switch.emulator.netconf_server.messages.names import USUAL_FEATURES, AnnouncedFeature
from optical_switch.emulator.netconf_server.session import UserGroup

CONNECT_SECONDS = 0.025
"""Time to set circuits: the vendor's figure, as of the same switch with TL1."""


@dataclass(frozen=True, slots=True)
class UserAccount:
    """A user who can log in.

    Parameters
    ----------
    password : str
        The password. Empty: none is accepted.
    public_key : str
        Public key in the format of OpenSSH. Empty: none is accepted.
    group : UserGroup
        What the user may change.
    """

    password: str = field(default="", repr=False)
    public_key: str = ""
    group: UserGroup = "admin"


@dataclass(frozen=True, slots=True)
class NetconfSwitchSettings:
    """Settings of the device.

    Parameters
    ----------
    accounts : Mapping[str, UserAccount]
        The users by their names.
    features : frozenset[AnnouncedFeature]
        The features that the device has and announces.
    connect_seconds : float
        Time of a change that sets circuits.
    disconnect_seconds : float
        Time of a change that only removes circuits.
    host_key : str
        Private host key in the format of OpenSSH. Empty: a new one.
    """

    accounts: Mapping[str, UserAccount] = field(default_factory=dict)
    features: frozenset[AnnouncedFeature] = USUAL_FEATURES
    connect_seconds: float = CONNECT_SECONDS
    disconnect_seconds: float = 0.0
    host_key: str = field(default="", repr=False)
