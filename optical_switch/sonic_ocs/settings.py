"""The settings of a session to a SONiC switch; all files have been read."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from optical_switch.drivers import SwitchTarget
from optical_switch.sonic_ocs.model import Origin


@dataclass(frozen=True, slots=True)
class Login:
    """A user of the switch and the password; empty: none."""

    user: str = ""
    password: str = ""


@dataclass(frozen=True, slots=True)
class PemTexts:
    """The authority that signed the certificate of the switch, our certificate and its key; empty: none."""

    ca: str
    certificate: str = ""
    private_key: str = ""


@dataclass(frozen=True, slots=True)
class GnmiSettings:
    """Settings of a session by gNMI. Without `tls` all data and the password are readable on the network."""

    target: SwitchTarget
    login: Login = Login()
    tls: PemTexts | None = None
    origin: Origin = "databases"


@dataclass(frozen=True, slots=True)
class RedisSettings:
    """Settings of a session by the databases: at `socket`, a Unix socket, or by TCP, where `tls` protects the data."""

    target: SwitchTarget
    login: Login = Login()
    tls: ssl.SSLContext | None = None
    socket: Path | None = None
