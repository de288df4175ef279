"""The target of `blast send` at each host: a file, a directory, a device, or the input of a command."""

from __future__ import annotations

import argparse
import re
import secrets
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from blast_client.send.option_values import STREAM
from blast_transport.base.errors import WrongInputError
from blast_transport.remote.line import COMMAND as LINE
from blast_transport.remote.place import TARGET
from blast_transport.session.settings import Destination
from blast_transport.wire.messages import COMMAND, FILE, FOLDER

_STREAM_NAME = "stdin"
_NAME_OF_COMMAND = re.compile(r"[A-Za-z0-9._-]{1,64}")
_NOTHING_KEPT = "/dev/null"
_OF_SSH = ("ssh_folder", "ssh_user", "ssh_port", "ssh_options", "ssh_window", "start_timeout")


@dataclass(frozen=True, slots=True)
class SendTarget:
    """The destination, and the permission of agents that are started over SSH: to run `line` or to write `path`."""

    destination: Destination
    line: str = ""
    path: str = ""

    @property
    def name(self) -> str:
        """Name of the data for messages."""
        return self.path or self.destination.file or self.destination.name

    @property
    def overwrites(self) -> bool:
        """True for a device, which the first byte changes."""
        return self.path.startswith("/dev/") and self.path != _NOTHING_KEPT

    @property
    def is_kept(self) -> bool:
        """True if receivers keep partial data of a file for a resumed transfer."""
        return self.destination.kind in (FILE, FOLDER) and not self.overwrites


def target_of(arguments: argparse.Namespace) -> SendTarget:
    """Return the target of the options. Raises WrongInputError."""
    kind = FOLDER if is_folder(arguments.file) else FILE
    if kind == FOLDER and arguments.command:
        raise WrongInputError(
            f"{arguments.file} is a directory, but a command reads a stream: tar c {arguments.file} | blast send - …"
        )
    if not arguments.ssh:
        return _of_agents(arguments, kind)
    path = arguments.name if arguments.name and arguments.name.startswith("/") else ""
    if path and (arguments.command or arguments.ssh_folder or arguments.folder):
        raise WrongInputError(
            f"--as {path} is an absolute path: leave out --command, --ssh-folder and --folder, or give a relative name"
        )
    if path and kind == FOLDER:
        raise WrongInputError(f"{arguments.file} is a directory: give its parent by --ssh-folder, and its name by --as")
    if path:
        return SendTarget(Destination(_file_of(path), FILE, TARGET), path=path)
    if arguments.command:
        return SendTarget(Destination(LINE, COMMAND, file=_file_name(arguments)), line=arguments.command)
    if not arguments.ssh_folder:
        raise WrongInputError(
            "--ssh needs a destination: give --ssh-folder PATH, --as with an absolute path, or --command LINE"
        )
    return SendTarget(Destination(_file_name(arguments), kind, arguments.folder))


def is_folder(written: str) -> bool:
    """Return True if an argument is a directory, not a file or stream."""
    return written != STREAM and Path(written).is_dir()


def names_stream(arguments: argparse.Namespace) -> bool:
    """Give a stream without a name a unique one, and return True if it did.

    A default name would overwrite an earlier stream.
    """
    if arguments.file != STREAM or arguments.name or arguments.command:
        return False
    from datetime import UTC, datetime

    arguments.name = f"{_STREAM_NAME}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
    return True


def _of_agents(arguments: argparse.Namespace, kind: str) -> SendTarget:
    for option in _OF_SSH:
        if getattr(arguments, option):
            raise WrongInputError(f"--{option.replace('_', '-')} needs --ssh: add it, or leave the option out")
    name = _file_name(arguments)
    if not arguments.command:
        return SendTarget(Destination(name, kind, arguments.folder))
    if not _NAME_OF_COMMAND.fullmatch(arguments.command):
        raise WrongInputError(
            f"{arguments.command!r} is not the name of a command: agents run only commands of their configuration; "
            "name one of them, or run a shell line with --ssh"
        )
    return SendTarget(Destination(arguments.command, COMMAND, file=name))


def _file_of(path: str) -> str:
    name = PurePosixPath(path).name
    if path.endswith("/") or name in ("", "..") or "{host}" in name:
        raise WrongInputError(f"--as {path} does not end with the name of a file or device: add it")
    return name


def _file_name(arguments: argparse.Namespace) -> str:
    """Return the name of the data at a receiver."""
    if arguments.name or arguments.file == STREAM:
        return arguments.name or _STREAM_NAME
    # `.` and `..` get the name of their directory.
    name = Path(arguments.file).name
    return name if name not in ("", "..") else Path(arguments.file).resolve().name
