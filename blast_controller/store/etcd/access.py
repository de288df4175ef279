"""Access to etcd: its members' addresses, the files of mutual TLS, a user, and the timeout of calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from blast_controller.store.etcd.errors import CredentialsUnreadableError


@dataclass(frozen=True, slots=True)
class EtcdTlsFiles:
    """Files in PEM: the authority that signed etcd's certificates, our certificate and its key."""

    ca: Path
    cert: Path
    key: Path


@dataclass(frozen=True, slots=True)
class User:
    """A user of etcd. The first line of `password_file` is the password, read at each login."""

    name: str
    password_file: Path


@dataclass(frozen=True, slots=True)
class EtcdTimeouts:
    """Seconds: `in_all` for a call at any of the members, `at_one` until the next member is tried."""

    in_all: float = 3.0
    at_one: float = 1.0


@dataclass(frozen=True, slots=True)
class Access:
    """`endpoints` are HOST:PORT of members, at least one. Without TLS, data and passwords are readable on the network.

    Raises ValueError without endpoints.
    """

    endpoints: tuple[str, ...]
    tls: EtcdTlsFiles | None = None
    user: User | None = None
    timeouts: EtcdTimeouts = field(default=EtcdTimeouts())

    def __post_init__(self) -> None:
        if not self.endpoints:
            raise ValueError("name at least one endpoint of etcd")

    def __str__(self) -> str:
        return ", ".join(self.endpoints)


def contents(path: Path) -> bytes:
    """Read a file of credentials. Raises CredentialsUnreadableError."""
    try:
        found = path.read_bytes()
    except OSError as error:
        raise CredentialsUnreadableError(path, error.strerror or str(error)) from error
    if not found.strip():
        raise CredentialsUnreadableError(path, "it is empty")
    return found
