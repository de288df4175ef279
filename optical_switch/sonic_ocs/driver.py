"""SONiC OCS as a driver of optical switches: its keys in the configuration, and how a switch is reached."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

from blast_base.endpoint import Endpoint
from blast_base.extras import NotInstalledError, require
from blast_base.settings import File
from optical_switch.drivers import Driver, DriverKeys, SwitchFiles, SwitchTarget
from optical_switch.errors import InvalidDriverSettingError
from optical_switch.sonic_ocs.access import GnmiAccess, RedisAccess
from optical_switch.sonic_ocs.model import Origin
from optical_switch.sonic_ocs.settings import Login, PemTexts

_LIBRARIES = {"gnmi": "grpc", "redis": "redis"}
_NAMES = {"gnmi": "gNMI", "redis": "Redis"}


class SonicOcsKeys(DriverKeys):
    """The keys of an optical switch with SONiC.

    `access`: gNMI, or the databases by Redis, over TCP or at the Unix socket `socket` in place of `address`. `origin`:
    how gNMI addresses the model. `ca` turns TLS on. `allow_insecure`: data and password may cross the network readable.
    """

    measures_power: ClassVar[bool] = False

    access: Literal["gnmi", "redis"] = "gnmi"
    origin: Origin = "databases"
    ca: File | None = None
    certificate: File | None = None
    private_key: File | None = None
    user: str = ""
    password_file: File | None = None
    socket: File | None = None
    allow_insecure: bool = False

    @property
    def local_socket(self) -> Path | None:
        """The Unix socket of Redis."""
        return self.socket if self.access == "redis" else None

    @property
    def summary(self) -> str:
        """Return the protocol and the transport."""
        transport = "a Unix socket" if self.socket is not None else "TLS" if self.ca is not None else "plain TCP"
        return f"{_NAMES[self.access]} by {transport}"

    def faults(self, switch: str) -> Iterator[str]:
        """Yield one sentence for each key that another key contradicts or requires."""
        if (self.certificate is None) != (self.private_key is None):
            yield f"{switch} needs certificate and private_key together: set both, or neither."
        if self.certificate is not None and self.ca is None:
            yield f"{switch} has certificate but no ca: set ca, which turns TLS on."
        if self.user and self.password_file is None:
            yield f"{switch} has user but no password_file: set password_file."
        if self.access == "gnmi":
            if self.socket is not None:
                yield f'{switch} has socket, which is for access = "redis" only: remove it.'
            if self.password_file is not None and not self.user:
                yield f"{switch} has password_file but no user: set user."
        elif self.origin != "databases":
            yield f'{switch} has origin, which is for access = "gnmi" only: remove it.'
        if self.socket is not None and self.ca is not None:
            yield f"{switch} has socket and ca: keep only one."


def _access(keys: SonicOcsKeys, target: SwitchTarget, files: SwitchFiles) -> GnmiAccess | RedisAccess:
    try:
        require("sonic-ocs", _LIBRARIES[keys.access])
    except NotInstalledError as error:
        raise InvalidDriverSettingError(f"{target.phrase} cannot use {_NAMES[keys.access]}: {error}.") from error
    is_local = keys.socket is not None or Endpoint(target.host, target.port).is_loopback
    if keys.ca is None and not is_local and not keys.allow_insecure:
        raise InvalidDriverSettingError(
            f"{target.phrase} would be reached without TLS: set ca, or allow_insecure = true in a network in which no "
            "other host can read or change the traffic."
        )
    login = _login(keys, target, files)
    tls = None if keys.ca is None else _read_tls(keys, keys.ca, target, files)
    if keys.access == "redis":
        return RedisAccess(target, login, tls and tls.context, keys.socket)
    return GnmiAccess(target, login, tls and tls.texts, keys.origin)


def _login(keys: SonicOcsKeys, target: SwitchTarget, files: SwitchFiles) -> Login:
    if (path := keys.password_file) is None:
        return Login()
    if password := files.read_secret(path).strip():
        return Login(keys.user, password)
    raise InvalidDriverSettingError(f"{target.phrase}: {path} is empty: write the password on its first line.")


class _Tls(NamedTuple):
    """The same certificates as gRPC and as Redis takes them."""

    texts: PemTexts
    context: ssl.SSLContext


def _read_tls(keys: SonicOcsKeys, ca: Path, target: SwitchTarget, files: SwitchFiles) -> _Tls:
    """Read certificates. The context checks them for gRPC too, which reports a bad one as an unreachable switch."""
    texts = PemTexts(files.read(ca))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cadata=texts.ca)
    except (ssl.SSLError, ValueError) as error:
        raise InvalidDriverSettingError(f"{target.phrase}: {ca} has no certificates in PEM: {error}.") from error
    if keys.certificate is None or keys.private_key is None:
        return _Tls(texts, context)
    texts = replace(texts, certificate=files.read(keys.certificate), private_key=files.read_secret(keys.private_key))
    try:
        # Without a password here, OpenSSL would ask for one on the terminal.
        context.load_cert_chain(keys.certificate, keys.private_key, password="")
    except (ssl.SSLError, ValueError) as error:
        raise InvalidDriverSettingError(
            f"{target.phrase}: {keys.certificate} and {keys.private_key} are not a certificate and its key in PEM, "
            f"without a passphrase: {error}."
        ) from error
    return _Tls(texts, context)


DRIVER = Driver("sonic-ocs", SonicOcsKeys, _access)
