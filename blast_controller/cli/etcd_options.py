"""Options that name a journal in etcd, for commands."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from blast_base.endpoint import parse_endpoint
from blast_base.extras import require

if TYPE_CHECKING:
    from blast_controller.store.etcd.connection import EtcdConnection
    from blast_controller.store.etcd.keys import Keys

DEFAULT_PREFIX = "/blast/"
_FILES = {
    "ca": "CA certificates to verify etcd's certificate",
    "cert": "client certificate for etcd",
    "key": "private key of the client certificate",
    "password-file": "file whose first line is the user's password",
}


class EtcdOptionsError(Exception):
    """The operator's fault: the options for etcd do not go together. One sentence."""


def add_etcd_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of etcd."""
    options = parser.add_argument_group("etcd", "Journal in etcd.")
    options.add_argument(
        "--etcd-prefix",
        metavar="PREFIX",
        default=DEFAULT_PREFIX,
        help=f"prefix of the journal's keys (default: {DEFAULT_PREFIX})",
    )
    options.add_argument(
        "--etcd-user", metavar="NAME", help="etcd user, if etcd does not take the user from the certificate"
    )
    for name, description in _FILES.items():
        options.add_argument(f"--etcd-{name}", type=Path, metavar="FILE", help=description)


def endpoints(text: str) -> tuple[str, ...]:
    """Parse HOST:PORT of members, separated by commas. Raises ValueError."""
    return tuple(str(parse_endpoint(part.strip())) for part in text.split(","))


def copier_name() -> str:
    """Return the leader's name shown to others while a journal is copied into etcd."""
    return f"a copy on {os.uname().nodename}"


@contextmanager
def connected(arguments: argparse.Namespace) -> Iterator[tuple[EtcdConnection, Keys]]:
    """Yield a connection, and where the journal is. Raises NotInstalledError, EtcdOptionsError, JournalError."""
    require("etcd", "grpc")
    from blast_controller.store.etcd.access import Access, EtcdTlsFiles, User
    from blast_controller.store.etcd.connection import EtcdConnection
    from blast_controller.store.etcd.keys import Keys

    files = (arguments.etcd_ca, arguments.etcd_cert, arguments.etcd_key)
    if any(files) and not all(files):
        raise EtcdOptionsError("--etcd-ca, --etcd-cert and --etcd-key must be given together: give all three or none")
    if (arguments.etcd_user is None) != (arguments.etcd_password_file is None):
        raise EtcdOptionsError("--etcd-user and --etcd-password-file must be given together: give both or none")
    user = None if arguments.etcd_user is None else User(arguments.etcd_user, arguments.etcd_password_file)
    try:
        keys = Keys(arguments.etcd_prefix)
    except ValueError as error:
        raise EtcdOptionsError(f"--etcd-prefix {arguments.etcd_prefix!r}: {error}") from error
    connection = EtcdConnection(Access(arguments.etcd, EtcdTlsFiles(*files) if all(files) else None, user))
    try:
        yield connection, keys
    finally:
        connection.close()
