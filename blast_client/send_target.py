"""What `blast send` wants of the data at each host: a file, a device, or the input of a command."""

from __future__ import annotations

import argparse
import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from blast_client.send_words import STREAM
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
class Wanted:
    """What agents are told, and, of agents that are started over SSH, what these may do: run `line` or write `path`."""

    destination: Destination
    line: str = ""
    path: str = ""

    @property
    def name(self) -> str:
        """What the data is called, for people."""
        return self.path or self.destination.file or self.destination.name

    @property
    def overwrites(self) -> bool:
        """A device, which from the first byte on is no more what it was."""
        return self.path.startswith("/dev/") and self.path != _NOTHING_KEPT

    @property
    def is_kept(self) -> bool:
        """What has come is kept to be gone on with, where it comes from a file."""
        return self.destination.kind in (FILE, FOLDER) and not self.overwrites


def wanted_of(arguments: argparse.Namespace) -> Wanted:
    """What the options say. Raises WrongInputError."""
    kind = FOLDER if is_folder(arguments.file) else FILE
    if kind == FOLDER and arguments.command:
        raise WrongInputError(
            f"{arguments.file} is a folder, and a command is fed a stream: tar c {arguments.file} | blast send - …"
        )
    if not arguments.ssh:
        return _of_agents(arguments, kind)
    path = arguments.name if arguments.name and arguments.name.startswith("/") else ""
    if path and (arguments.command or arguments.ssh_folder or arguments.folder):
        raise WrongInputError(
            f"--as {path} says all of where it goes: leave out --command, --ssh-folder and --folder, or give a name"
        )
    if path and kind == FOLDER:
        raise WrongInputError(f"{arguments.file} is a folder: say where it goes by --ssh-folder, and its name by --as")
    if path:
        return Wanted(Destination(_file_of(path), FILE, TARGET), path=path)
    if arguments.command:
        return Wanted(Destination(LINE, COMMAND, file=_file_name(arguments)), line=arguments.command)
    if not arguments.ssh_folder:
        raise WrongInputError(
            "--ssh needs to know what becomes of the data on the hosts: "
            "--ssh-folder PATH, --as with an absolute path, or --command LINE"
        )
    return Wanted(Destination(_file_name(arguments), kind, arguments.folder))


def is_folder(written: str) -> bool:
    """Whether what somebody wrote is a folder, and no file or stream."""
    return written != STREAM and Path(written).is_dir()


def names_stream(arguments: argparse.Namespace) -> bool:
    """Give a stream that has no name one that no file has; whether it did.

    What was sent before must not be lost to what nobody gave a name.
    """
    if arguments.file != STREAM or arguments.name or arguments.command:
        return False
    arguments.name = f"{_STREAM_NAME}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
    return True


def _of_agents(arguments: argparse.Namespace, kind: str) -> Wanted:
    for option in _OF_SSH:
        if getattr(arguments, option):
            raise WrongInputError(f"--{option.replace('_', '-')} goes with --ssh: give that too, or leave it out")
    name = _file_name(arguments)
    if not arguments.command:
        return Wanted(Destination(name, kind, arguments.folder))
    if not _NAME_OF_COMMAND.fullmatch(arguments.command):
        raise WrongInputError(
            f"{arguments.command!r} is no name of a command: agents run what their configuration names, and nothing "
            "else; on hosts without an agent --ssh runs a line of yours"
        )
    return Wanted(Destination(arguments.command, COMMAND, file=name))


def _file_of(path: str) -> str:
    name = PurePosixPath(path).name
    if path.endswith("/") or name in ("", "..") or "{host}" in name:
        raise WrongInputError(f"--as {path} does not end with the name of a file or a device: give one")
    return name


def _file_name(arguments: argparse.Namespace) -> str:
    """What the data is called at a receiver, if nobody says otherwise."""
    if arguments.name or arguments.file == STREAM:
        return arguments.name or _STREAM_NAME
    # `.` and `..` are called what the folder is called.
    name = Path(arguments.file).name
    return name if name not in ("", "..") else Path(arguments.file).resolve().name
