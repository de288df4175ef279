"""What one side proves itself by, read from its files."""

from __future__ import annotations

import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from blast_transport.agent.authentication import LEAST_SECRET_BYTES
from blast_transport.agent.errors import SettingsError
from blast_transport.agent.tls import TlsFiles
from blast_transport.errors import sentence

if TYPE_CHECKING:
    # A sender has credentials, and no configuration of an agent.
    from blast_transport.agent.settings import AccessSection

_MOST_SECRET_BYTES = 4096


@dataclass(frozen=True, slots=True)
class SharedSecret:
    """A secret that both sides know."""

    value: bytes = field(repr=False)


Credentials = TlsFiles | SharedSecret | None
"""None: nothing is proved, which is for connections within one machine."""


def credentials_of(access: AccessSection) -> Credentials:
    """What the configuration names. Raises SettingsError for files that cannot be used."""
    if access.secret_file is not None:
        return SharedSecret(read_secret(access.secret_file))
    if access.certificate is None or access.private_key is None or access.client_ca is None:
        return None
    refuse_readable_by_others(access.private_key)
    return TlsFiles(access.certificate, access.private_key, access.client_ca)


def read_secret(path: Path) -> bytes:
    """The secret in a file, without white space around it. Raises SettingsError."""
    refuse_readable_by_others(path)
    try:
        with path.open("rb") as file:
            secret = file.read(_MOST_SECRET_BYTES + 1).strip()
    except OSError as error:
        raise SettingsError(f"the secret file {path} cannot be read: {sentence(error)}.") from error
    if not LEAST_SECRET_BYTES <= len(secret) <= _MOST_SECRET_BYTES:
        raise SettingsError(
            f"the secret in {path} has {len(secret)} characters, and needs from {LEAST_SECRET_BYTES} to "
            f"{_MOST_SECRET_BYTES}: head -c 32 /dev/urandom | base64 > {path}"
        )
    return secret


def refuse_readable_by_others(path: Path) -> None:
    """Raises SettingsError unless a file of secrets is kept from those who are neither its owner nor in its group."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {sentence(error)}.") from error
    if mode & stat.S_IRWXO:
        raise SettingsError(f"{path} holds secrets, and every user of this machine may use it: chmod o= {path}.")
