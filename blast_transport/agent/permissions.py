"""What a sender may have written or run here: what it asks for becomes something safe, or is refused.

A file or folder goes below a configured folder. The way down is walked one part at a time, each opened relative to the
one above and never through a symbolic link, so that a link which is swapped in between two looks cannot lead outside;
whoever writes gets the open folder itself and a base name, never a path. A device is overwritten only if it is
configured and the sender names it. A command is one of those configured; of what comes from the wire it sees at most
the file's name, as one argument or an environment variable, and there is no shell.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from blast_transport.agent.claims import make_claimed
from blast_transport.agent.settings import FILE_NAME, CommandSection, DeviceSection, FolderSection, Settings
from blast_transport.base.errors import NotAllowedError, UnsafeNameError, sentence
from blast_transport.store.file_names import checked_parts, shown
from blast_transport.store.folder_target import IS_THERE

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_Place = tuple[int, str, Path]
_BARE_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
_FILE_NAME_VARIABLE = "BLAST_FILE_NAME"


@dataclass(frozen=True, slots=True)
class AllowedFile:
    """A file to be written: `name` in the open folder `directory`, which belongs to whoever holds this.

    At the time of asking `name` is a regular file or nothing. Write under a temporary name (O_NOFOLLOW,
    dir_fd=directory) and rename within `directory`. `folder` is the path of the folder, for people to read.
    """

    directory: int
    name: str
    folder: Path

    def close(self) -> None:
        """Give the folder back."""
        os.close(self.directory)


@dataclass(frozen=True, slots=True)
class AllowedFolder(AllowedFile):
    """A folder to be made: at the time of asking `name` is an empty folder or nothing; the rest is as of a file."""


@dataclass(frozen=True, slots=True)
class AllowedDevice:
    """A device to be overwritten."""

    path: Path


@dataclass(frozen=True, slots=True)
class AllowedCommand:
    """A command to be piped into: its arguments, its whole environment and where it runs.

    `report_errors`: its sender is told what it says last when it fails.
    """

    name: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path
    report_errors: bool = False


@dataclass(frozen=True, slots=True)
class AllowedMemory:
    """Bytes that are kept in memory, at most so many."""

    max_bytes: int


Allowed = AllowedFile | AllowedFolder | AllowedDevice | AllowedCommand | AllowedMemory


class Permissions:
    """What the configuration allows. Without state: thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self._folders = {folder.name: folder for folder in settings.folder}
        self._devices = {device.name: device for device in settings.device}
        self._commands = {command.name: command for command in settings.command}
        self._memory_bytes = settings.limits.memory_bytes

    def allow(self, kind: str, name: str, folder: str = "", file: str = "") -> Allowed:
        """What a sender asks for, as the agent grants it.

        A file or folder `name` goes below `folder` (empty: the first one), or, a file, if that names a device, over it,
        whatever it is called; a command `name` is told the name `file` (empty: none); memory has no name that matters.
        Raises NotAllowedError, UnsafeNameError.
        """
        match kind:
            case "file":
                return self._file(name, folder)
            case "folder":
                return self._made_folder(name, folder)
            case "command":
                return self._command(name, file)
            case "memory":
                return self._memory()
        raise NotAllowedError(f"a target of the kind {shown(kind)} is not known: file, folder, command or memory")

    def _file(self, name: str, folder: str) -> AllowedFile | AllowedDevice:
        section = self._place(folder)
        if isinstance(section, DeviceSection):
            return AllowedDevice(section.path)
        return AllowedFile(*self._opened(section, name, _refuse_unless_replaceable))

    def _made_folder(self, name: str, folder: str) -> AllowedFolder:
        section = self._place(folder)
        if isinstance(section, DeviceSection):
            raise NotAllowedError(f"{section.name} is a device: a folder goes below a [[folder]] of this agent")
        return AllowedFolder(*self._opened(section, name, _refuse_unless_free))

    def _opened(self, section: FolderSection, name: str, refuse: Callable[[int, str, str], None]) -> _Place:
        """Where `name` goes: the open folder above it, its base name, and the path of that folder."""
        *above, base = checked_parts(name)
        if section.claimed and above:
            make_claimed(section.path, above[0])
        directory = _walk(section.path, above, name)
        try:
            refuse(directory, base, name)
        except BaseException:
            os.close(directory)
            raise
        return directory, base, section.path.joinpath(*above)

    def _place(self, name: str) -> FolderSection | DeviceSection:
        # A device is overwritten for whoever names it, and for nobody else.
        if name in self._devices:
            return self._devices[name]
        if not self._folders:
            raise NotAllowedError("this agent writes no files: its configuration names no [[folder]]")
        if not name:
            return next(iter(self._folders.values()))
        if name not in self._folders:
            raise NotAllowedError(f"this agent has no folder {shown(name)}: it has {', '.join(self._folders)}")
        return self._folders[name]

    def _command(self, name: str, file: str) -> AllowedCommand:
        if name not in self._commands:
            known = f"it runs {', '.join(self._commands)}" if self._commands else "it runs none"
            raise NotAllowedError(f"this agent does not run a command {shown(name)}: {known}")
        return _filled_in(self._commands[name], file)

    def _memory(self) -> AllowedMemory:
        if not self._memory_bytes:
            raise NotAllowedError("this agent keeps nothing in memory: limits.memory_bytes of its configuration is 0")
        return AllowedMemory(self._memory_bytes)


# ----------------------------------------------------------------------------------------------------- commands


def _filled_in(command: CommandSection, file: str) -> AllowedCommand:
    if file:
        _check_file_of_command(file)
    elif FILE_NAME in command.run:
        raise NotAllowedError(f"the command {command.name!r} needs the name of a file, and none was given")
    arguments = tuple(file if part == FILE_NAME else part for part in command.run)
    told = {_FILE_NAME_VARIABLE: file} if file else {}
    return AllowedCommand(command.name, arguments, _BARE_ENVIRONMENT | told, command.folder, command.report_errors)


def _check_file_of_command(file: str) -> None:
    if len(checked_parts(file)) != 1:
        raise UnsafeNameError(f"a command is told a base name only, not {shown(file)}")
    if file.startswith("-"):
        raise UnsafeNameError(f"a command would take {shown(file)} for an option")


# --------------------------------------------------------------------------------------------------- the walk


def _walk(base: Path, parts: list[str], name: str) -> int:
    """Open the folder `parts` below `base`, through no symbolic link; the descriptor is the caller's."""
    try:
        # The operator's own path may go through links.
        descriptor = os.open(base, _FOLDER)
    except OSError as error:
        raise NotAllowedError(f"the folder {base} of this agent cannot be opened: {sentence(error)}") from error
    for part in parts:
        above = descriptor
        try:
            descriptor = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=above)
        except OSError as error:
            raise UnsafeNameError(_why_not_entered(above, part, name, error)) from error
        finally:
            os.close(above)
    return descriptor


def _why_not_entered(above: int, part: str, name: str, error: OSError) -> str:
    if _is_link(above, part):
        return f"the name {shown(name)} goes through the symbolic link {part!r}"
    return f"the folder {part!r} of the name {shown(name)} cannot be entered: {sentence(error)}"


def _is_link(directory: int, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _refuse_unless_replaceable(directory: int, base: str, name: str) -> None:
    try:
        mode = os.stat(base, dir_fd=directory, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise UnsafeNameError(f"the name {shown(name)} cannot be looked at: {sentence(error)}") from error
    if stat.S_ISLNK(mode):
        raise UnsafeNameError(f"the name {shown(name)} is that of a symbolic link")
    if not stat.S_ISREG(mode):
        raise UnsafeNameError(f"the name {shown(name)} is that of something which is no file")


def _refuse_unless_free(directory: int, base: str, name: str) -> None:
    """Nobody's folder is ever replaced: what is in it may have come from elsewhere."""
    try:
        inside = os.open(base, _FOLDER | os.O_NOFOLLOW, dir_fd=directory)
    except FileNotFoundError:
        return
    except OSError as error:
        raise UnsafeNameError(f"the name {shown(name)} is that of something which is no folder") from error
    try:
        if os.listdir(inside):  # noqa: PTH208 - of an open folder, not of a path
            raise NotAllowedError(f"a folder {shown(name)} {IS_THERE}")
    finally:
        os.close(inside)
