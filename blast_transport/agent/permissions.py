"""Permissions of senders on this host: each request becomes a safe object, or is rejected.

A file or folder goes below a configured folder. The path is resolved one component at a time, each opened relative to
its parent and never through a symbolic link, so that a link that is swapped in during the check cannot lead outside;
the writer gets the open folder and a base name, never a path. A device is overwritten only if it is configured and the
sender names it. A command is one of the configured ones; it sees at most the file's name from the wire, as one argument
or an environment variable, and no shell runs.
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
from blast_transport.store.files.file_names import checked_parts, shown
from blast_transport.store.targets.folder_target import IS_THERE

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_Place = tuple[int, str, Path]
_BARE_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
_FILE_NAME_VARIABLE = "BLAST_FILE_NAME"


@dataclass(frozen=True, slots=True)
class AllowedFile:
    """A file to be written: `name` in the open folder `directory`, which the owner of this object closes.

    When it was checked, `name` was a regular file or did not exist. Write under a temporary name (O_NOFOLLOW,
    dir_fd=directory) and rename within `directory`. `folder` is the path of the folder, for messages.
    """

    directory: int
    name: str
    folder: Path

    def close(self) -> None:
        """Give the folder back."""
        os.close(self.directory)


@dataclass(frozen=True, slots=True)
class AllowedFolder(AllowedFile):
    """A folder to be created.

    When it was checked, `name` was an empty folder or did not exist; the rest is as for a file.
    """


@dataclass(frozen=True, slots=True)
class AllowedDevice:
    """A device to be overwritten."""

    path: Path


@dataclass(frozen=True, slots=True)
class AllowedCommand:
    """A command to be piped into: its arguments, its whole environment and its working directory.

    `report_errors`: send its last output to the sender if it fails.
    """

    name: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path
    report_errors: bool = False


@dataclass(frozen=True, slots=True)
class AllowedMemory:
    """Data that is kept in memory, at most `max_bytes`."""

    max_bytes: int


Allowed = AllowedFile | AllowedFolder | AllowedDevice | AllowedCommand | AllowedMemory


class Permissions:
    """Permissions that the configuration grants. Stateless and thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self._folders = {folder.name: folder for folder in settings.folder}
        self._devices = {device.name: device for device in settings.device}
        self._commands = {command.name: command for command in settings.command}
        self._memory_bytes = settings.limits.memory_bytes

    def allow(self, kind: str, name: str, folder: str = "", file: str = "") -> Allowed:
        """Return the object that a sender requests, if it is permitted.

        A file or folder `name` goes below `folder` (empty: the first one); if `folder` names a device, a file
        overwrites it under any name; a command `name` gets the file name `file` (empty: none); memory ignores the name.
        Raise NotAllowedError, UnsafeNameError.
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
        """Return the open parent folder of `name`, its base name, and the path of that folder."""
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
        # A device is overwritten only if the sender names it.
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
    file_name = {_FILE_NAME_VARIABLE: file} if file else {}
    return AllowedCommand(command.name, arguments, _BARE_ENVIRONMENT | file_name, command.folder, command.report_errors)


def _check_file_of_command(file: str) -> None:
    if len(checked_parts(file)) != 1:
        raise UnsafeNameError(f"a command accepts a base name only, not {shown(file)}")
    if file.startswith("-"):
        raise UnsafeNameError(
            f"a command would interpret {shown(file)} as an option; use a name that does not begin with '-'"
        )


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
            raise UnsafeNameError(_entry_error(above, part, name, error)) from error
        finally:
            os.close(above)
    return descriptor


def _entry_error(above: int, part: str, name: str, error: OSError) -> str:
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
    """Reject the name of a folder with contents: a folder is never replaced, as its files may have other sources."""
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
