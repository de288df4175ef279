"""What a sender may have written or run here: a target from the wire becomes something safe, or is refused.

A file goes below a configured folder. The way down is walked one part at a time, each opened relative to the one above
and never through a symbolic link, so that a link which is swapped in between two looks cannot lead outside; whoever
writes gets the open folder itself and a base name, never a path. A command is one of those configured; of what comes
from the wire it sees at most the file's name, as one argument or an environment variable, and there is no shell.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from blast_transport.agent.errors import NotAllowedError
from blast_transport.agent.settings import FILE_NAME, CommandSection, FolderSection, Settings
from blast_transport.errors import UnsafeNameError, sentence

TEMPORARY_PREFIX = ".blast-"
"""How the names of files that are not complete begin."""
LONGEST_PART = 200
"""Bytes of one part of a name: the file system's 255, less what a temporary name adds."""
LONGEST_NAME = 1024
DEEPEST = 16
"""Parts of a name at most."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_BARE_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
_FILE_NAME_VARIABLE = "BLAST_FILE_NAME"


@dataclass(frozen=True, slots=True)
class FileTarget:
    """A file to be written: `name` in the open folder `directory`, which belongs to whoever holds this.

    At the time of asking `name` is a regular file or nothing. Write under a temporary name (O_EXCL, O_NOFOLLOW,
    dir_fd=directory) and rename within `directory`. `path` is for people to read.
    """

    directory: int
    name: str
    path: Path

    def close(self) -> None:
        """Give the folder back."""
        os.close(self.directory)


@dataclass(frozen=True, slots=True)
class CommandTarget:
    """A command to be piped into: its arguments, its whole environment and where it runs."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path


@dataclass(frozen=True, slots=True)
class MemoryTarget:
    """Bytes that are kept in memory, at most so many."""

    most_bytes: int


Target = FileTarget | CommandTarget | MemoryTarget


class Permissions:
    """What the configuration allows. Without state: thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self._folders = {folder.name: folder for folder in settings.folder}
        self._commands = {command.name: command for command in settings.command}
        self._memory_bytes = settings.limits.memory_bytes

    def resolve(self, target: Mapping[str, object]) -> Target:
        """The target that a sender asks for: {kind: file, name, folder?}, {kind: command, name, file?}, {kind: memory}.

        Raises NotAllowedError, UnsafeNameError.
        """
        match target.get("kind"):
            case "file":
                _refuse_other_keys(target, {"kind", "folder", "name"})
                return self._file(_text(target, "name"), target.get("folder"))
            case "command":
                _refuse_other_keys(target, {"kind", "name", "file"})
                return self._command(_text(target, "name"), target.get("file"))
            case "memory":
                _refuse_other_keys(target, {"kind"})
                return self._memory()
            case other:
                raise NotAllowedError(f"a target of the kind {_shown(other)} is not known: file, command or memory")

    def _file(self, name: str, folder: object) -> FileTarget:
        section = self._folder(folder)
        *above, base = checked_parts(name)
        directory = _walk(section.path, above, name)
        try:
            _refuse_unless_replaceable(directory, base, name)
        except BaseException:
            os.close(directory)
            raise
        return FileTarget(directory, base, section.path.joinpath(*above, base))

    def _folder(self, name: object) -> FolderSection:
        if not self._folders:
            raise NotAllowedError("this agent writes no files: its configuration names no [[folder]]")
        if name is None:
            return next(iter(self._folders.values()))
        if not isinstance(name, str) or name not in self._folders:
            raise NotAllowedError(f"this agent has no folder {_shown(name)}: it has {_list(self._folders)}")
        return self._folders[name]

    def _command(self, name: str, file_name: object) -> CommandTarget:
        if name not in self._commands:
            known = f"it runs {_list(self._commands)}" if self._commands else "it runs none"
            raise NotAllowedError(f"this agent does not run a command {_shown(name)}: {known}")
        return _filled_in(self._commands[name], file_name)

    def _memory(self) -> MemoryTarget:
        if not self._memory_bytes:
            raise NotAllowedError("this agent keeps nothing in memory: limits.memory_bytes of its configuration is 0")
        return MemoryTarget(self._memory_bytes)


# ---------------------------------------------------------------------------------------------------- names


def checked_parts(name: str) -> list[str]:
    """The parts of a relative path from the wire. Raises UnsafeNameError."""
    if name.startswith("/"):
        raise UnsafeNameError(f"{_shown(name)} is an absolute path: names are relative to a folder of the agent")
    if len(name) > LONGEST_NAME or len(os.fsencode(name.encode(errors="replace"))) > LONGEST_NAME:
        raise UnsafeNameError(f"the name {_shown(name)} has more than {LONGEST_NAME} bytes")
    parts = name.split("/")
    if len(parts) > DEEPEST:
        raise UnsafeNameError(f"the name {_shown(name)} has more than {DEEPEST} parts")
    for part in parts:
        _check_part(part, name)
    return parts


def _check_part(part: str, name: str) -> None:
    if part in ("", ".", ".."):
        raise UnsafeNameError(f"the name {_shown(name)} has a part {part!r}, which names no file or folder of its own")
    if not part.isprintable():
        raise UnsafeNameError(f"the name {_shown(name)} holds characters that cannot be printed")
    if len(part.encode()) > LONGEST_PART:
        raise UnsafeNameError(f"the name {_shown(name)} has a part of more than {LONGEST_PART} bytes")
    if part.startswith(TEMPORARY_PREFIX):
        raise UnsafeNameError(f"the name {_shown(name)} begins like our own temporary files, with {TEMPORARY_PREFIX}")


def _filled_in(command: CommandSection, file_name: object) -> CommandTarget:
    environment = dict(_BARE_ENVIRONMENT)
    arguments = command.run
    if file_name is not None:
        environment[_FILE_NAME_VARIABLE] = _command_file_name(file_name)
    if FILE_NAME in command.run:
        if file_name is None:
            raise NotAllowedError(f"the command {command.name!r} needs the name of a file, and none was given")
        shown = environment[_FILE_NAME_VARIABLE]
        arguments = tuple(shown if part == FILE_NAME else part for part in command.run)
    return CommandTarget(arguments, environment, command.folder)


def _command_file_name(file_name: object) -> str:
    if not isinstance(file_name, str):
        raise NotAllowedError(f"the file of a command must be a name, not {_shown(file_name)}")
    if len(checked_parts(file_name)) != 1:
        raise UnsafeNameError(f"a command is told a base name only, not {_shown(file_name)}")
    if file_name.startswith("-"):
        raise UnsafeNameError(f"a command would take {_shown(file_name)} for an option")
    return file_name


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
        return f"the name {_shown(name)} goes through the symbolic link {part!r}"
    return f"the folder {part!r} of the name {_shown(name)} cannot be entered: {sentence(error)}"


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
        raise UnsafeNameError(f"the name {_shown(name)} cannot be looked at: {sentence(error)}") from error
    if stat.S_ISLNK(mode):
        raise UnsafeNameError(f"the name {_shown(name)} is that of a symbolic link")
    if not stat.S_ISREG(mode):
        raise UnsafeNameError(f"the name {_shown(name)} is that of something which is no file")


# ------------------------------------------------------------------------------------------------- small things


def _text(target: Mapping[str, object], field: str) -> str:
    value = target.get(field)
    if not isinstance(value, str):
        raise NotAllowedError(f"the target's {field} must be a string, not {_shown(value)}")
    return value


def _refuse_other_keys(target: Mapping[str, object], known: set[str]) -> None:
    for name in target:
        if name not in known:
            raise NotAllowedError(f"a target of the kind {target['kind']!r} has no {_shown(name)}")


def _shown(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _list(names: Mapping[str, object]) -> str:
    return ", ".join(names)
