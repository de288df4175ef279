"""Credentials of one end, read from its files."""

from __future__ import annotations

import stat
from dataclasses import dataclass, field
from pathlib import Path

from blast_transport.base.errors import SettingsError, sentence
from blast_transport.credentials.authentication import MIN_DIFFERENT_BYTES, MIN_SECRET_BYTES
from blast_transport.credentials.tls import TlsFiles

_MAX_SECRET_BYTES = 4096
"""A longer file is not a secret, but another file named by mistake."""


@dataclass(frozen=True, slots=True)
class SharedSecret:
    """A secret that both sides know."""

    value: bytes = field(repr=False)


Credentials = TlsFiles | SharedSecret | None
"""None: nothing is proved, which is for connections within one machine."""


def read_secret(path: Path) -> bytes:
    """Read the secret in a file, without surrounding white space. Raise SettingsError."""
    refuse_readable_by_others(path)
    try:
        with path.open("rb") as file:
            secret = file.read(_MAX_SECRET_BYTES + 1).strip()
    except OSError as error:
        raise SettingsError(f"the secret file {path} cannot be read: {sentence(error)}.") from error
    if not MIN_SECRET_BYTES <= len(secret) <= _MAX_SECRET_BYTES:
        raise SettingsError(
            f"the secret in {path} has {len(secret)} characters, and needs from {MIN_SECRET_BYTES} to "
            f"{_MAX_SECRET_BYTES}: {_make(path)}"
        )
    if len(set(secret)) < MIN_DIFFERENT_BYTES:
        raise SettingsError(f"the secret in {path} can be guessed, and needs random characters: {_make(path)}")
    return secret


def _make(path: Path) -> str:
    return f"head -c 32 /dev/urandom | base64 > {path}"


def refuse_readable_by_others(path: Path) -> None:
    """Raise SettingsError if users other than the owner and the group may access a file with secrets."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {sentence(error)}.") from error
    if mode & stat.S_IRWXO:
        raise SettingsError(f"{path} holds secrets, and every user of this machine may use it: chmod o= {path}.")
